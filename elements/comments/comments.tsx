// <ringside-comments product="…">: what others say, and a form for saying something.

import { type View, h } from '../base/dom';
import { Part, newKey } from '../base/part';
import {
  COMMENT_POSTED,
  DELETE_COMMENT,
  EDIT_COMMENT,
  POST_COMMENT,
  type PostCommentData,
  REPORT_COMMENT,
} from '../generated/comments';
import type { CommentsData } from '../generated/first';
import type { Ringside } from '../elements';
import css from './comments.css?inline';
import english from 'english:comments';
import { Form } from './form';

type Comment = CommentsData['comments']['nodes'][number];
type Statistics = CommentsData['commentStatistics'];
type Posted = Extract<PostCommentData['postComment'], { comment: object }>;

const NOTHING = { rating: null, title: '', body: '' };

export default class Comments extends Part<CommentsData> {
  private product: string;
  private languages: string[];
  private ratings: number[] = [];
  private comments: Comment[] | null = null;
  private total = 0;
  private more: string | null = null;
  private statistics: Statistics | null = null;
  private viewer: CommentsData['viewer'] = null;
  /** Comments that arrived meanwhile. They are shown when the reader asks for them: nothing jumps. */
  private fresh: Comment[] = [];
  private writing: Form | null = null;
  private editing: { id: string; form: Form } | null = null;
  private asking: { comment: Comment; toDelete: boolean } | null = null;
  private reason = '';
  private problem = '';
  private isLoading = false;
  private endStream: (() => void) | null = null;

  constructor(host: HTMLElement, ringside: Ringside, texts: any) {
    super(host, ringside, texts, 'comments', english, css);
    this.product = host.getAttribute('product') ?? '';
    this.languages = listed(host.getAttribute('languages'));
    const draft = this.newForm();
    if (!draft.isEmpty) this.writing = draft;
    this.until(() => this.endStream?.());
  }

  private newForm() {
    return new Form(this, 'new', NOTHING, `ringside draft ${this.ringside.base} ${this.product}`);
  }

  // ── reading ──

  protected arrived(data: CommentsData) {
    const { comments, commentStatistics, viewer } = data;
    this.comments = comments.nodes;
    this.take(data);
    this.statistics = commentStatistics;
    this.viewer = viewer;
    const after = this.ratings.length || this.languages.length ? null : (comments.nodes[0]?.id ?? null);
    this.endStream ??= this.ringside.live(COMMENT_POSTED, { product: this.product, after }, ({ commentPosted }) => this.arrivedLive(commentPosted));
    this.render();
  }

  private take({ comments: { totalCount, pageInfo } }: CommentsData) {
    this.total = totalCount;
    this.more = pageInfo.hasNextPage ? pageInfo.endCursor : null;
  }

  private ask(after: string | null = null) {
    const variables = { product: this.product, languages: this.languages, ratings: this.ratings, after };
    return this.insist(() => this.ringside.ask(this.first!, variables));
  }

  private async reload() {
    if (!this.first) return;
    this.isLoading = true;
    this.render();
    const answer = await this.ask();
    this.isLoading = false;
    this.fresh = [];
    if (answer) this.arrived(answer);
    else this.render();
  }

  protected signedInOrOut() {
    if (!this.ringside.session.member && this.viewer) this.say(this.t('UNAUTHENTICATED'));
    void this.reload();
  }

  private async showMore() {
    const answer = await this.ask(this.more);
    if (!answer) return;
    const known = new Set(this.comments!.map(({ id }) => id));
    const next = answer.comments.nodes.filter(({ id }) => !known.has(id));
    this.comments!.push(...next);
    this.take(answer);
    if (next[0]) await this.focus(`[data-id="${next[0].id}"]`);
    else this.render();
  }

  private filter(changed: { languages?: string[]; ratings?: number[] }) {
    Object.assign(this, changed);
    void this.reload().then(() => this.say(this.t('found', { n: this.total })));
  }

  private arrivedLive(comment: Comment) {
    const old = this.comments?.findIndex(({ id }) => id === comment.id) ?? -1;
    if (old >= 0) this.comments![old] = comment;
    else if (this.fits(comment) && !this.fresh.some(({ id }) => id === comment.id)) {
      this.fresh.unshift(comment);
      this.say(this.t('arrived', { n: this.fresh.length }));
    }
    this.render();
  }

  private fits({ rating, language }: Comment) {
    return (!this.ratings.length || (rating !== null && this.ratings.includes(rating))) && (!this.languages.length || this.languages.includes(language));
  }

  private async showFresh() {
    const [first] = this.fresh;
    this.comments = [...this.fresh, ...this.comments!];
    this.total += this.fresh.length;
    this.fresh = [];
    if (first) await this.focus(`[data-id="${first.id}"]`);
  }

  // ── writing ──

  private async post() {
    const form = this.writing!;
    const input = form.input();
    const language = this.language;
    if (!input) return;
    const comment = await this.send(form, POST_COMMENT, { product: this.product, language, ...input });
    if (!comment) return;
    form.sent();
    this.writing = null;
    this.comments = [comment, ...this.comments!.filter(({ id }) => id !== comment.id)];
    this.fresh = this.fresh.filter(({ id }) => id !== comment.id);
    if (comment.status === 'PUBLISHED') this.total += 1;
    this.say(this.t(comment.status === 'PUBLISHED' ? 'posted' : 'held'));
    this.emit('comment', { id: comment.id, product: this.product, status: comment.status });
    await this.focus(`[data-id="${comment.id}"]`);
  }

  private async edit() {
    const { id, form } = this.editing!;
    const input = form.input();
    const comment = input && (await this.send(form, EDIT_COMMENT, { comment: id, ...input }));
    if (!comment) return;
    this.editing = null;
    this.comments = this.comments!.map((old) => (old.id === id ? comment : old));
    this.say(this.t('edited'));
    await this.focus(`[data-id="${id}"]`);
  }

  /** The comment that was made; null if it was refused, which the form then says, or if nobody is signed in any more. */
  private async send(form: Form, document: typeof POST_COMMENT | typeof EDIT_COMMENT, input: object) {
    form.isSending = true;
    this.render();
    let answer = await this.mutate<any>(document, { input });
    if (answer?.code === 'CHALLENGE_NEEDED') {
      const solution = await (await import('../challenge')).default(this.ringside.ask);
      answer = await this.mutate<any>(document, { input: { ...input, solution } });
    }
    form.isSending = false;
    if (answer?.code) form.refuse(answer);
    this.render();
    return (answer as Posted | null)?.comment ?? null;
  }

  private async open(comment: Comment, toDelete: boolean) {
    this.asking = { comment, toDelete };
    this.reason = this.problem = '';
    this.render();
    await null;
    await null;
    this.find<HTMLDialogElement>('dialog')?.showModal();
  }

  private async confirm() {
    const { comment, toDelete } = this.asking!;
    const input = { comment: comment.id, idempotencyKey: newKey() };
    const answer = toDelete
      ? await this.mutate(DELETE_COMMENT, { input })
      : await this.mutate(REPORT_COMMENT, { input: { ...input, reason: this.reason } });
    if (!answer) return;
    this.problem = answer.code ? this.refusal(answer) : '';
    this.render();
    if (this.problem) return;
    this.find<HTMLDialogElement>('dialog')?.close();
    if (toDelete) this.comments = this.comments!.filter(({ id }) => id !== comment.id);
    if (toDelete && comment.status === 'PUBLISHED') this.total -= 1;
    this.say(this.t(toDelete ? 'deleted' : 'reported'));
    this.emit(toDelete ? 'comment-deleted' : 'comment-reported', { id: comment.id });
  }

  // ── views ──

  protected view() {
    const { comments, fresh, more } = this;
    return (
      <section class="stack" aria-labelledby="title" aria-busy={this.isLoading ? 'true' : null}>
        <div class="row between">
          <h2 id="title" part="title">{this.t('comments')}</h2>
          {!this.writing && !this.viewer?.suspension && (
            <button type="button" class="primary" part="button" onclick={() => this.startWriting()}>{this.t('write')}</button>
          )}
        </div>
        {this.viewer?.suspension && <p class="notice">{this.t('suspended')}</p>}
        {this.statistics && this.statistics.total > 0 && this.overview(this.statistics)}
        {this.writing && this.writing.view(() => this.post(), () => this.stopWriting(), this.action(this.writing, 'post'))}
        {this.note()}
        {fresh.length > 0 && <button type="button" part="button" onclick={() => this.showFresh()}>{this.t('showFresh', { n: fresh.length })}</button>}
        {comments?.length === 0 && <p class="notice">{this.t(this.ratings.length || this.languages.length ? 'noneFound' : 'none')}</p>}
        <ol class="list" aria-label={this.t('comments')}>
          {comments ? comments.map((comment) => this.comment(comment)) : [1, 2, 3].map(() => <li class="wait" aria-hidden="true"></li>)}
        </ol>
        {more && <button type="button" part="button" onclick={() => this.showMore()}>{this.t('more')}</button>}
        {this.asking && this.dialog()}
      </section>
    );
  }

  private startWriting() {
    this.writing = this.newForm();
    void this.focus('#new input');
  }

  private stopWriting() {
    this.writing = null;
    void this.focus('button.primary');
  }

  /** Who is not signed in reads why, and loses nothing by signing in. */
  private action(form: Form, text: string) {
    if (!this.viewer) return this.signInButton();
    return <button type="submit" class="primary" part="button" disabled={form.isSending}>{this.t(text)}</button>;
  }

  private overview({ total, average, histogram, languages }: Statistics) {
    const most = Math.max(...histogram.map(({ count }) => count), 1);
    return (
      <div class="overview">
        <p class="average">
          <strong>{average == null ? '–' : this.number(average, { minimumFractionDigits: 1, maximumFractionDigits: 1 })}</strong>
          {this.stars(Math.round(average ?? 0), this.t('average'))}
          <span class="soft">{this.t('total', { n: total })}</span>
        </p>
        <ul class="histogram" aria-label={this.t('byRating')}>
          {histogram.map(({ rating, count }) => (
            <li key={rating}>
              <button
                type="button"
                class="plain"
                aria-pressed={String(this.ratings.includes(rating))}
                onclick={() => this.filter({ ratings: this.ratings.includes(rating) ? this.ratings.filter((one) => one !== rating) : [...this.ratings, rating] })}
              >
                <span class="hidden">{this.t('ofRating', { stars: this.t('stars', { n: rating }), n: count })}</span>
                <span aria-hidden="true">{this.number(rating)} ★</span>
                <progress max={most} value={count} aria-hidden="true"></progress>
                <span aria-hidden="true">{this.number(count)}</span>
              </button>
            </li>
          ))}
        </ul>
        {languages.length > 1 && (
          <label class="language">
            {this.t('language')}
            <select value={this.languages.length === 1 ? this.languages[0] : ''} onchange={(event: any) => this.filter({ languages: listed(event.target.value) })}>
              <option value="">{this.t('allLanguages')}</option>
              {languages.map(({ language, count }) => <option key={language} value={language}>{this.t('counted', { what: this.languageName(language), n: count })}</option>)}
            </select>
          </label>
        )}
      </div>
    );
  }

  private languageName(language: string) {
    return new Intl.DisplayNames(this.language, { type: 'language', fallback: 'code' }).of(language) ?? language;
  }

  private stars(rating: number, label = '') {
    return (
      <span class="rating">
        <span class="hidden">{label} {this.t('stars', { n: rating })}</span>
        <span aria-hidden="true">{'★'.repeat(rating)}<span>{'★'.repeat(5 - rating)}</span></span>
      </span>
    );
  }

  private comment(comment: Comment): View {
    const { id, rating, title, body, author, language, status, moderationNote, createdAt, editedAt } = comment;
    if (this.editing?.id === id) {
      const { form } = this.editing;
      const cancel = () => {
        this.editing = null;
        void this.focus(`[data-id="${id}"]`);
      };
      return <li key={id}>{form.view(() => this.edit(), cancel, this.action(form, 'save'))}</li>;
    }
    return (
      <li key={id} data-id={id} tabindex="-1" part="comment">
        <article class="comment" aria-label={this.t('by', { name: author.name })}>
          <p class="row head">
            <strong dir="auto" part="author">{author.name}</strong>
            {rating !== null && this.stars(rating)}
            <time class="soft" datetime={createdAt}>{this.date(createdAt)}</time>
            {editedAt && <span class="soft">{this.t('wasEdited')}</span>}
          </p>
          {status !== 'PUBLISHED' && <p class="held">{this.t(status === 'PENDING' ? 'held' : 'rejected')} {moderationNote}</p>}
          {title && <h3 dir="auto" lang={language}>{title}</h3>}
          {comment.removed ? <p class="body soft">{this.t('removed')}</p> : <p class="body" dir="auto" lang={language}>{body}</p>}
          <p class="row actions">
            {comment.viewerCanEdit && <button type="button" class="plain" aria-label={this.t('editOf', { name: author.name })} onclick={() => this.startEditing(comment)}>{this.t('edit')}</button>}
            {comment.viewerCanEdit && <button type="button" class="plain" aria-label={this.t('deleteOf', { name: author.name })} onclick={() => this.open(comment, true)}>{this.t('delete')}</button>}
            {this.viewer && author.id !== this.viewer.id && <button type="button" class="plain" aria-label={this.t('reportOf', { name: author.name })} onclick={() => this.open(comment, false)}>{this.t('report')}</button>}
          </p>
        </article>
      </li>
    );
  }

  private startEditing({ id, rating, title, body }: Comment) {
    this.editing = { id, form: new Form(this, 'edit', { rating, title: title ?? '', body }, null) };
    void this.focus('#edit textarea');
  }

  private dialog() {
    const { toDelete } = this.asking!;
    return (
      <dialog key="dialog" aria-labelledby="asked" onclose={() => { this.asking = null; this.render(); }}>
        <form class="stack" onsubmit={(event: Event) => { event.preventDefault(); void this.confirm(); }}>
          <h3 id="asked">{this.t(toDelete ? 'deleteThis' : 'reportThis')}</h3>
          {!toDelete && (
            <label>
              {this.t('reason')}
              <textarea value={this.reason} dir="auto" required maxlength="500" aria-invalid={this.problem ? 'true' : null} oninput={(event: any) => { this.reason = event.target.value; this.problem = ''; this.render(); }}></textarea>
            </label>
          )}
          {this.problem && <p class="error" role="alert">{this.problem}</p>}
          <div class="row">
            <button type="submit" class="primary" part="button">{this.t(toDelete ? 'delete' : 'report')}</button>
            <button type="button" part="button" onclick={() => this.find<HTMLDialogElement>('dialog')?.close()}>{this.t('cancel')}</button>
          </div>
        </form>
      </dialog>
    );
  }
}

const listed = (text: string | null) => text?.split(/[\s,]+/).filter(Boolean) ?? [];
