// A form for a text, whose draft outlives a reload: a comment, a reply, a change, or the site's answer.

import { h } from '../base/dom';
import { newKey } from '../base/part';
import type { Refused } from '../service';
import type Comments from './comments';
import type { Reply } from './comments';

export type Kind = 'post' | 'reply' | 'edit' | 'answer';

export interface Values {
  rating: number | null;
  title: string;
  body: string;
  /** When the text that is changed was written. */
  since?: string | null;
  /** The request with these values, until something is typed: sent again as it was, it counts once. */
  sent?: any;
}

/** What a request says, of which some is asked about. */
export interface Sent {
  language?: string;
  proof?: string | null;
}

/** Letters of a text that the service takes. */
const LONGEST = 10_000;

let count = 0;

export class Form {
  readonly name = `form-${count++}`;
  private declare part: Comments;
  declare readonly kind: Kind;
  /** What is answered or changed. */
  declare readonly to: Reply | null;
  declare readonly draft: string;
  /** A comment has a title and stars; a reply and an answer have neither. */
  declare readonly isWhole: boolean;
  declare values: Values;
  errors: Record<string, string> = {};
  declare isSending?: boolean;
  /** The member's own review, which is in the way of another one. */
  declare existing?: string | null;
  /** Whether the page's proof of purchase was refused: then the comment can go without. */
  private declare isUnproven?: boolean;

  constructor(part: Comments, kind: Kind, to: Reply | null, values: Values, draft: string) {
    Object.assign(this, { part, kind, to, draft });
    this.isWhole = kind === 'post' || (kind === 'edit' && part.rootOf(to!.id)?.id === to!.id);
    const since = { edit: to?.editedAt, answer: to?.answer?.at }[kind as string];
    this.values = { ...values, since };
    try {
      const stored = JSON.parse(localStorage.getItem(draft)!);
      if (!since || stored.since === since) Object.assign(this.values, stored);
      else this.keep(false); // it would undo what was written since
      if (!to && this.values.sent?.comment) this.values.sent = null; // a change of the one review has this draft
    } catch { /* blocked, or there is none */ }
  }

  get isEmpty() {
    return !this.values.body && !this.values.title;
  }

  /** The shop's proof that the member has bought the product, if the page has one. */
  get proof() {
    return this.isUnproven ? null : this.part.host.getAttribute('proof');
  }

  private change(changed: Partial<Values>) {
    Object.assign(this.values, changed, { sent: null });
    this.keep();
    this.part.render();
  }

  keep(isKept = !this.isEmpty) {
    try {
      if (isKept) localStorage.setItem(this.draft, JSON.stringify(this.values));
      else localStorage.removeItem(this.draft);
    } catch { /* blocked or full: the text is in the form, and nowhere else */ }
  }

  /** What to send, with what it is about; null if something is missing, which is then said at its field. */
  input(about: object) {
    const { rating, title, body } = this.values;
    const { t, rated } = this.part;
    this.errors = {};
    if (this.isWhole && rated === 'yes' && rating === null) this.errors.rating = t('needsRating');
    if (!body.trim() && this.kind !== 'answer') this.errors.body = t('needsBody');
    if ([...body.trim()].length > LONGEST) this.errors.body = t('tooLong', { n: LONGEST });
    if (Object.keys(this.errors).length) {
      this.focusError();
      return null;
    }
    return (this.values.sent ||= {
      ...about,
      ...(this.isWhole && { rating, title: title.trim() || null }),
      body: body.trim(),
      idempotencyKey: newKey(),
    });
  }

  /** Says a refusal at the field that it is about. */
  refuse(refused: Refused) {
    const field = refused.path?.[1]!;
    this.existing = refused.existing;
    // That of a page that was loaded earlier may be too old.
    this.isUnproven ||= field === 'proof' && this.values.sent?.proof === this.proof;
    const key = this.existing ? 'existing' : field === 'proof' ? 'unproven' : '';
    const message = key ? this.part.t(key) : this.part.refusal(refused);
    this.errors = { [field === 'body' || (this.isWhole && field in this.values) ? field : 'form']: message };
    this.change({});
    this.focusError();
  }

  private focusError() {
    void this.part.focus(`#${this.name} :is(input, textarea)[aria-invalid="true"]`);
  }

  view(send: () => unknown, cancel: () => unknown, editExisting: () => unknown) {
    const { t } = this.part;
    const { title, body } = this.values;
    const label = { reply: 'replyTo', answer: 'answerAs' }[this.kind as string] ?? 'body';
    return (
      <form
        key={this.name}
        class="stack form"
        id={this.name}
        part="form"
        novalidate
        onsubmit={(event: Event) => {
          event.preventDefault();
          send();
        }}
        onkeydown={({ key }: KeyboardEvent) => {
          if (key === 'Escape' && this.isEmpty) cancel();
        }}
      >
        {this.isWhole && this.part.rated !== 'no' && this.stars()}
        {this.isWhole && (
          <label>
            {t('title')}
            <input value={title} maxlength="200" dir="auto" oninput={(event: any) => this.change({ title: event.target.value })} {...this.field('title')} />
          </label>
        )}
        {this.error('title')}
        <label>
          {t(label, { name: this.to?.author.name ?? '' })}
          <textarea class="first" value={body} dir="auto" oninput={(event: any) => this.change({ body: event.target.value })} {...this.field('body')}></textarea>
        </label>
        {this.error('body')}
        {this.error('form')}
        <div class="row" key="row">
          {this.existing ? <button type="button" class="primary" part="button" onclick={editExisting}>{t('editExisting')}</button> : this.action()}
          <button type="button" part="button" onclick={cancel}>{t('cancel')}</button>
        </div>
      </form>
    );
  }

  /** Who is not signed in reads why, and loses nothing by signing in. Guests may do less than members. */
  private action() {
    const { part } = this;
    const text = { edit: 'save', answer: 'save' }[this.kind as string] ?? this.kind;
    const button = <button type="submit" class="primary" part="button" aria-disabled={this.isSending && 'true'}>{part.t(text)}</button>;
    return part.viewer ? [button, part.viewer.isGuest && this.errors.form && part.signInButton()] : part.signInButton();
  }

  private stars() {
    const { t, rated } = this.part;
    return [
      <fieldset class="stars" key="stars" {...this.field('rating')}>
        <legend>{t(rated === 'yes' ? 'yourStars' : 'yourRating')}</legend>
        {[0, 1, 2, 3, 4, 5].slice(+(rated === 'yes')).map((value) => {
          const title = value ? t('stars', { n: value }) : t('noStars');
          return (
            <label key={value} title={title}>
              <input type="radio" name={`${this.name}-rating`} checked={+this.values.rating! === value} onchange={() => this.change({ rating: value || null })} {...(value === 1 && this.field('rating'))} />
              <span class="hidden">{title}</span>
              <span class={value ? '' : 'soft'} aria-hidden="true">{value ? '★' : '✕'}</span>
            </label>
          );
        })}
      </fieldset>,
      this.error('rating'),
    ];
  }

  private field(name: keyof Values) {
    return this.errors[name] && { 'aria-invalid': 'true', 'aria-describedby': `${this.name}-${name}` };
  }

  private error(name: string) {
    return this.errors[name] && <p class="error" key={`error-${name}`} id={`${this.name}-${name}`} role={name === 'form' && 'alert'}>{this.errors[name]}</p>;
  }
}
