// A comment as it is read: its text, the site's answer, what a reader can do with it, and the replies in its thread.

import { type View, h } from '../base/dom';
import type Comments from './comments';
import type { Comment, Reply } from './comments';

export function commentView(part: Comments, comment: Comment): View {
  const { t, writing } = part;
  const { id, rating, title, verifiedAt, language } = comment;
  const own = [
    title && <h3 dir="auto" lang={language}>{title}</h3>,
    text(part, comment),
  ];
  const marks = [
    rating !== null && part.stars(rating),
    verifiedAt && <span class="verified" part="verified" title={part.date(verifiedAt)}>✓ {t('verified')}</span>,
  ];
  return (
    <li key={id} data-id={id} tabindex="-1" part="comment">
      {writing?.editForm(comment) ?? article(part, comment, marks, own, [helpful(part, comment), actions(part, comment), answerAction(part, comment)])}
      {writing?.under(comment)}
      {thread(part, comment)}
    </li>
  );
}

function article(part: Comments, { author, removed, createdAt, editedAt, status, moderationNote }: Reply, marks: any[], own: any[], after: any[]): View {
  const { t } = part;
  return (
    <article class="comment" aria-label={removed ? t('removed') : t('by', { name: author.name })}>
      {!removed && (
        <p class="row head">
          <strong dir="auto" part="author">{author.name}</strong>
          {author.isGuest && <span class="soft">{t('guest')}</span>}
          {marks}
          <time class="soft" datetime={createdAt}>{part.date(createdAt)}</time>
          {editedAt && <span class="soft">{t('wasEdited')}</span>}
        </p>
      )}
      {status !== 'PUBLISHED' && <p class="held">{t(status === 'PENDING' ? 'held' : 'rejected')} <bdi>{moderationNote}</bdi></p>}
      {own}
      <p class="row actions">{after}</p>
    </article>
  );
}

const text = ({ t, date }: Comments, { removed, body, language, answer }: Reply) => [
  removed ? <p class="body soft">{t('removed')}</p> : <p class="body" dir="auto" lang={language}>{body}</p>,
  answer && (
    <div class="answer" part="answer">
      <p class="row head"><strong>{t('answer')}</strong> <time class="soft" datetime={answer.at}>{date(answer.at)}</time></p>
      <p class="body" dir="auto">{answer.body}</p>
    </div>
  ),
];

/** How many found it helpful: a button, but for its author. */
function helpful(part: Comments, comment: Comment) {
  const { t, viewer } = part;
  const { helpful: n, viewerFoundHelpful, author, removed, status } = comment;
  if (removed || status !== 'PUBLISHED') return null;
  if (author.id === viewer?.id) return n > 0 && <span class="soft">{t('foundHelpful', { n })}</span>;
  const what = n > 0 ? t('counted', { what: t('helpful'), n }) : t('helpful');
  return (
    <button
      type="button"
      class="plain"
      aria-pressed={String(viewerFoundHelpful)}
      aria-label={t('of', { what, name: author.name })}
      onclick={() => (viewer ? part.write((writing) => writing.mark(comment)) : part.signIn())}
    >
      {what}
    </button>
  );
}

function action({ t, write }: Comments, name: string, { author }: Reply, use: Parameters<Comments['write']>[0]) {
  return <button key={name} type="button" class="plain" aria-label={t('of', { what: t(name), name: author.name })} onclick={() => write(use)}>{t(name)}</button>;
}

function actions(part: Comments, comment: Reply) {
  const { viewer } = part;
  const { removed, status, author, viewerCanEdit } = comment;
  if (removed || viewer?.suspension) return null;
  return [
    status === 'PUBLISHED' && action(part, 'reply', comment, (writing) => writing.reply(comment)),
    viewerCanEdit && action(part, 'edit', comment, (writing) => writing.edit(comment)),
    viewerCanEdit && action(part, 'delete', comment, (writing) => writing.ask(comment, true)),
    viewer && author.id !== viewer.id && action(part, 'report', comment, (writing) => writing.ask(comment, false)),
  ];
}

function answerAction(part: Comments, comment: Reply) {
  return part.isEditor && !comment.removed && action(part, 'answerIt', comment, (writing) => writing.answer(comment));
}

function thread(part: Comments, comment: Comment) {
  const { t, writing } = part;
  const { id, author, replyCount, replies: { nodes, pageInfo } } = comment;
  const fresh = part.freshReplies.get(id)?.length ?? 0;
  /** Whom a reply answers, if that is another reply. */
  const to = (reply: Reply) => nodes.map((one) => one.id === reply.inReplyToId && <span class="soft">{t('to', { name: one.author.name })} {one.author.isGuest && t('guest')}</span>);
  return [
    nodes.length > 0 && (
      <ol class="thread" key="thread" part="replies" aria-label={t('repliesTo', { name: author.name })}>
        {nodes.map((reply) => (
          <li key={reply.id} data-id={reply.id} tabindex="-1" part="reply">
            {writing?.editForm(reply) ?? article(part, reply, to(reply), [text(part, reply)], [actions(part, reply), answerAction(part, reply)])}
            {writing?.under(reply)}
          </li>
        ))}
      </ol>
    ),
    pageInfo.hasNextPage && (
      <button key="more" type="button" class="plain" onclick={() => part.showMoreReplies(comment)}>{t('moreReplies', { n: Math.max(replyCount - nodes.length, 1) })}</button>
    ),
    fresh > 0 && <div key="fresh" class="fresh"><button type="button" part="button" onclick={() => part.showFreshReplies(comment)}>{t('freshReplies', { n: fresh })}</button></div>,
  ];
}
