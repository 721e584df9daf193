// What a reader does with comments beyond reading them: posting, answering, changing, marking, reporting and deleting.

import { h } from '../base/dom';
import { newKey, on } from '../base/part';
import {
  ANSWER_COMMENT,
  COUNTED,
  DELETE_COMMENT,
  EDIT_COMMENT,
  MARK_HELPFUL,
  ONE_COMMENT,
  POST_COMMENT,
  REPORT_COMMENT,
} from '../generated/writing';
import type Comments from './comments';
import type { Comment, Reply } from './comments';
import { Form, type Kind, type Sent, type Values } from './form';
import english from './texts/en.json';
import css from './writing.css?inline';

const NOTHING: Values = { rating: null, title: '', body: '' };
const DOCUMENTS = { post: POST_COMMENT, reply: POST_COMMENT, edit: EDIT_COMMENT, answer: ANSWER_COMMENT };

export async function load(part: Comments) {
  const translated = await part.further?.writing();
  part.extend(css, english, translated?.default);
  return new Writing(part);
}

interface Asking {
  comment: Reply;
  toDelete: boolean;
  reason: string;
  problem?: string;
  isSending?: boolean;
}

export class Writing {
  private forms: Form[] = [];
  /** The drafts that were opened already: one that the writer has put aside stays so until the page is loaded again. */
  private opened = new Set<string>();
  private asking: Asking | null = null;
  /** The comment whose mark was refused, and why. */
  private unmarked = { id: '', problem: '' };

  constructor(private part: Comments) {
    part.until(on(part.ringside.session, 'change', () => this.forgetRefusals()));
  }

  // ── forms ──

  private form(kind: Kind, id?: string) {
    return this.forms.find((form) => form.kind === kind && form.to?.id === id);
  }

  /** The form of this kind, which may be open already. */
  private open(kind: Kind, to: Reply | null, values = NOTHING, draft = this.draftOf(kind, to)) {
    let form = this.form(kind, to?.id);
    if (!form) {
      this.opened.add(draft);
      form = new Form(this.part, kind, to, values, draft);
      this.forms.push(form);
    }
    return form;
  }

  private begin(...form: Parameters<typeof this.open>) {
    void this.part.focus(`#${this.open(...form).name} .first`);
  }

  /** A change and an answer begin with what is there: a draft that was put aside would hide it. */
  private close(form: Form) {
    if (form.draft !== this.part.draft && form.kind !== 'reply') form.keep(false);
    this.drop(form);
    void (form.to ? this.part.focusOn(form.to.id) : this.part.focus('button.primary'));
  }

  private drop(form: Form) {
    this.forms = this.forms.filter((one) => one !== form);
  }

  /** Opens the forms of what was begun before the page was loaded. */
  restore() {
    const drafts = this.part.drafts().filter((draft) => !this.opened.has(draft));
    const open = (kind: Kind, to: Reply | null) => {
      const form = drafts.includes(this.draftOf(kind, to)) && this.open(kind, to);
      if (form && form.isEmpty) this.drop(form); // its draft was of an older text
    };
    open('post', null);
    for (const comment of this.part.comments ?? []) {
      for (const one of [comment, ...comment.replies.nodes]) {
        if (this.part.isEditor) open('answer', one);
        open('reply', one);
        if (one.viewerCanEdit) open('edit', one);
      }
    }
    this.part.render();
  }

  /** What somebody writes about stays, of what was shown: on a further page it would take the form out of sight. */
  keep(before: Comment[]) {
    const { part } = this;
    for (const { to, isEmpty } of this.forms) {
      const old = to && !isEmpty && part.rootOf(to.id, before);
      if (!old || part.rootOf(to.id)) continue;
      const root = part.comments!.find(({ id }) => id === old.id);
      if (root) root.replies.nodes.push(to);
      else part.comments!.push(old);
    }
  }

  private draftOf(kind: Kind, to: Reply | null) {
    const { draft } = this.part;
    return to ? `${draft} ${to.id}${kind === 'reply' ? '' : kind}` : draft;
  }

  post = () => this.begin('post', null);
  reply = (to: Reply) => this.begin('reply', to);
  answer = (to: Reply) => this.begin('answer', to, { ...NOTHING, body: to.answer?.body ?? '' });
  edit = (comment: Reply) => {
    const { rating = null, title = '', body } = comment as Comment;
    this.begin('edit', comment, { rating, title: title ?? '', body });
  };

  /** Opens the one review that a member may have, with what they have written now. */
  private async editExisting(form: Form) {
    const id = form.existing!;
    if (!this.part.rootOf(id)) {
      const answer = await this.part.insist(() => this.part.ringside.ask(ONE_COMMENT, { comment: id }));
      if (!answer?.comment || !this.forms.includes(form)) return; // cancelled, or pressed twice
      this.posted(answer.comment);
    }
    this.drop(form);
    this.begin('edit', this.part.rootOf(id)!, form.values, this.part.draft);
    form.keep(); // of a review that was changed before, no draft was left
  }

  // ── sending ──

  /** What is typed while a text is sent becomes a change of it. */
  private async submit(form: Form) {
    if (form.isSending) return;
    const input = form.input(this.addressed(form));
    const comment = input && (await this.send(form, input));
    if (!comment) return;
    const { kind, to } = form;
    const { part } = this;
    const since = !form.values.sent && form.values;
    form.keep(false);
    this.drop(form);
    if (kind === 'post') this.posted(comment);
    else if (kind === 'reply') this.replied(to!.id, comment);
    else part.replace(comment);
    if (form.isWhole) void this.count();
    part.say(part.t(comment.status === 'PUBLISHED' ? `${kind}Done` : 'held'));
    if (kind === 'post' || kind === 'reply') part.emit('comment', { id: comment.id, product: part.product, status: comment.status, inReplyTo: to?.id ?? null });
    if (since) this.begin(kind === 'answer' ? kind : 'edit', comment, since);
    else await part.focusOn(comment.id);
  }

  /** The comment as it is now; null if it was refused, which its form says, or cancelled, or the sign-in has ended. */
  private async send(form: Form, sent: Sent): Promise<Comment | null> {
    const { part } = this;
    const { since } = part;
    form.isSending = true;
    part.render();
    const isOpen = () => this.forms.includes(form);
    const post = (more?: object) => {
      Object.assign(sent, more);
      form.keep();
      return part.mutate<any>(DOCUMENTS[form.kind], { input: sent }, () => !isOpen(), since);
    };
    let answer = await post();
    // What the page says that its language is may be none: then what it begins with counts, or else that of the texts.
    for (const language of [/^[a-z]*/i.exec(`${sent.language}`)![0], part.language]) {
      if (answer?.path?.[1] === 'language') answer = await post({ language });
    }
    if (answer?.code === 'CHALLENGE_NEEDED') {
      const solution = await import('../challenge').then((solver) => solver.default(part.ringside.ask)).catch(() => null);
      answer = await post({ solution });
    }
    form.isSending = false;
    if (answer?.code && isOpen()) form.refuse(answer);
    part.render();
    return answer?.comment ?? null;
  }

  /** What the input of a form is about. */
  private addressed({ kind, to, proof }: Form) {
    const { product, host, ringside, language: ofTexts } = this.part;
    const language = ringside.speaking(host).lang || ofTexts;
    if (kind === 'post') return { product, language, ...(proof && { proof }) };
    return kind === 'reply' ? { product, language, inReplyTo: to!.id } : { comment: to!.id };
  }

  async mark({ id, viewerFoundHelpful }: Comment) {
    const { part } = this;
    const helpful = !viewerFoundHelpful;
    const answer = await part.mutate(MARK_HELPFUL, { input: { comment: id, helpful, idempotencyKey: newKey() } });
    if (!answer) return;
    this.unmarked = { id, problem: answer.code ? part.refusal(answer) : '' };
    if (answer.comment) {
      part.replace(answer.comment);
      part.emit('comment-helpful', { id, helpful });
    }
    part.render();
  }

  /** Nothing was refused to who is signed in now. */
  private forgetRefusals() {
    this.unmarked.problem = '';
    if (this.asking) this.asking.problem = '';
    this.forms.forEach((form) => Object.assign(form, { errors: {}, existing: null }));
  }

  async ask(comment: Reply, toDelete: boolean) {
    this.asking = { comment, toDelete, reason: '' };
    try {
      this.asking.reason = sessionStorage.getItem(`ringside report ${comment.id}`) ?? '';
    } catch { /* blocked */ }
    await this.part.focus('dialog'); // it is drawn then
    this.shown()?.showModal();
  }

  /** A reason outlives a page that is left to sign in. */
  private explain(asking: Asking, reason: string) {
    Object.assign(asking, { reason, problem: '' });
    const kept = `ringside report ${asking.comment.id}`;
    try {
      if (reason) sessionStorage.setItem(kept, reason);
      else sessionStorage.removeItem(kept);
    } catch { /* blocked or full: the reason is in the dialog, and nowhere else */ }
    this.part.render();
  }

  private shown() {
    return this.part.find<HTMLDialogElement>('dialog');
  }

  private async confirm() {
    const { part } = this;
    const asking = this.asking!;
    if (asking.isSending) return;
    const { comment: { id }, toDelete, reason } = asking;
    const root = part.rootOf(id);
    part.say('');
    Object.assign(asking, { isSending: true, problem: '' });
    const input = { comment: id, idempotencyKey: newKey(), ...(!toDelete && { reason }) };
    const isCancelled = () => asking !== this.asking;
    const answer = await part.mutate<any>(toDelete ? DELETE_COMMENT : REPORT_COMMENT, { input }, isCancelled);
    asking.isSending = false;
    asking.problem = !answer ? part.said : answer.code ? part.refusal(answer) : '';
    part.render();
    if (!answer || asking.problem) return;
    this.explain(asking, '');
    if (asking === this.asking) this.shown()?.close();
    if (toDelete) {
      this.removed(id);
      if (root?.id === id) void this.count();
      await (root && part.comments!.includes(root) ? part.focusOn(root.id) : part.focus('button.primary'));
    }
    part.say(part.t(toDelete ? 'deleted' : 'reported'));
    part.emit(toDelete ? 'comment-deleted' : 'comment-reported', { id });
  }

  // ── what becomes of what is shown ──

  /** Shows the numbers of the overview as they are after a change. */
  private async count() {
    const { part } = this;
    const answer = await part.ringside.ask(COUNTED, { product: part.product }).catch(() => null);
    if (answer) part.statistics = answer.commentStatistics;
    part.render();
  }

  private posted(comment: Comment) {
    const { part } = this;
    const isOther = ({ id }: Reply) => id !== comment.id;
    part.comments = [comment, ...part.comments!.filter(isOther)];
    part.fresh = part.fresh.filter(isOther);
  }

  /** Shows a reply at the end of its thread, where it may have arrived before the answer. */
  private replied(to: string, reply: Reply) {
    const { part } = this;
    const root = part.rootOf(to);
    if (!root) return;
    const isOther = ({ id }: Reply) => id !== reply.id;
    const isCounted = part.rootOf(reply.id) === root;
    part.freshReplies.set(root.id, (part.freshReplies.get(root.id) ?? []).filter(isOther));
    root.replies.nodes = [...root.replies.nodes.filter(isOther), reply];
    if (reply.status === 'PUBLISHED' && !isCounted) root.replyCount += 1;
  }

  /** A comment with replies leaves a stub, which goes with the last of them. */
  private removed(id: string) {
    const { part } = this;
    const root = part.rootOf(id);
    if (!root) return;
    if (root.id === id) {
      Object.assign(root, { removed: true, status: 'PUBLISHED', answer: null, title: null, rating: null, verifiedAt: null, body: '' });
    } else {
      root.replies.nodes = root.replies.nodes.filter((reply) => {
        if (reply.id !== id) return true;
        if (reply.status === 'PUBLISHED') root.replyCount -= 1;
        return false;
      });
    }
    if (root.removed && (root.replyCount < 1 || part.isFiltered)) part.comments = part.comments!.filter((comment) => comment !== root);
    part.render();
  }

  // ── views ──

  postForm() {
    return this.view(this.form('post'));
  }

  editForm({ id }: Reply) {
    return this.view(this.form('edit', id));
  }

  /** The forms and what else is said below a comment. */
  under({ id }: Reply) {
    return [
      this.unmarked.id === id && this.unmarked.problem && <p key="unmarked" class="error" role="alert">{this.unmarked.problem} {this.part.viewer?.isGuest && this.part.signInButton()}</p>,
      this.view(this.form('answer', id)),
      this.view(this.form('reply', id)),
    ];
  }

  private view(form: Form | undefined) {
    return form?.view(() => this.submit(form), () => this.close(form), () => this.editExisting(form));
  }

  dialog() {
    if (!this.asking) return null;
    const { asking, part } = this;
    const { t } = part;
    // What the page says meanwhile stands behind the dialog, and is not heard there.
    const problem = asking.problem || (asking.isSending && part.said);
    return (
      <dialog key="dialog" aria-labelledby="asked" onclose={() => { this.asking = null; part.render(); }}>
        <form class="stack" onsubmit={(event: Event) => { event.preventDefault(); void this.confirm(); }}>
          <h3 id="asked">{t(asking.toDelete ? 'deleteThis' : 'reportThis')}</h3>
          {!asking.toDelete && (
            <label>
              {t('reason')}
              <textarea value={asking.reason} dir="auto" required maxlength="500" aria-invalid={asking.problem ? 'true' : null} oninput={(event: any) => this.explain(asking, event.target.value)}></textarea>
            </label>
          )}
          {problem && <p class="error" role="alert">{problem}</p>}
          <div class="row">
            {part.viewer && !(problem && part.viewer.isGuest && !asking.toDelete) ? <button type="submit" class="primary" part="button" aria-disabled={asking.isSending && 'true'}>{t(asking.toDelete ? 'delete' : 'report')}</button> : part.signInButton()}
            <button type="button" part="button" autofocus={asking.toDelete} onclick={() => this.shown()?.close()}>{t('cancel')}</button>
          </div>
        </form>
      </dialog>
    );
  }
}
