// A form for a comment: a new one, whose draft outlives a reload, or one that is being changed.

import { h } from '../base/dom';
import { type Part, newKey } from '../base/part';
import type { Refused } from '../service';

export interface Values {
  rating: number | null;
  title: string;
  body: string;
}

export class Form {
  values: Values;
  errors: Record<string, string> = {};
  isSending = false;
  /** Of the request that sends these values: sent again, it counts once. */
  private key = '';

  constructor(
    private part: Part<any>,
    readonly name: string,
    values: Values,
    private draft: string | null,
  ) {
    this.values = { ...values, ...this.stored() };
  }

  get isEmpty() {
    return !this.values.body && !this.values.title;
  }

  private stored(): Partial<Values> {
    try {
      return JSON.parse(localStorage.getItem(this.draft!)!) ?? {};
    } catch {
      return {};
    }
  }

  private change(changed: Partial<Values>) {
    Object.assign(this.values, changed);
    this.key = '';
    this.keep(this.values);
    this.part.render();
  }

  private keep(values: Values | null) {
    try {
      if (this.draft && values) localStorage.setItem(this.draft, JSON.stringify(values));
      else if (this.draft) localStorage.removeItem(this.draft);
    } catch { /* blocked or full: the text is in the form, and nowhere else */ }
  }

  /** What to send; null if something is missing, which is then said at its field. */
  input() {
    const { rating, title, body } = this.values;
    this.errors = {};
    if (!body.trim()) this.errors.body = this.part.t('needsBody');
    if (Object.keys(this.errors).length) {
      this.focusError();
      return null;
    }
    this.key ||= newKey();
    return { rating, title: title.trim() || null, body: body.trim(), idempotencyKey: this.key };
  }

  /** Says a refusal at the field that it is about. */
  refuse(refused: Refused) {
    const field = refused.path?.[1] ?? '';
    this.errors = { [field in this.values ? field : 'form']: this.part.refusal(refused) };
    this.key = '';
    this.focusError();
  }

  private focusError() {
    void this.part.focus(`#${this.name} [aria-invalid="true"]`);
  }

  sent() {
    this.keep(null);
    this.values = { rating: null, title: '', body: '' };
    this.errors = {};
    this.key = '';
  }

  view(send: () => void, cancel: () => void, action: unknown) {
    const { t } = this.part;
    const { rating, title, body } = this.values;
    const field = (name: keyof Values) => ({
      'aria-invalid': this.errors[name] ? 'true' : null,
      'aria-describedby': this.errors[name] ? `${this.name}-${name}` : null,
    });
    const error = (name: string) => this.errors[name] && <p class="error" id={`${this.name}-${name}`}>{this.errors[name]}</p>;
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
        onkeydown={(event: KeyboardEvent) => event.key === 'Escape' && this.isEmpty && cancel()}
      >
        <fieldset class="stars" {...field('rating')}>
          <legend>{t('yourRating')}</legend>
          {[5, 4, 3, 2, 1].map((value) => (
            <label key={value} title={t('stars', { n: value })}>
              <input type="radio" name={`${this.name}-rating`} value={String(value)} checked={rating === value} onchange={() => this.change({ rating: value })} {...(value === 1 ? field('rating') : {})} />
              <span class="hidden">{t('stars', { n: value })}</span>
              <span aria-hidden="true">★</span>
            </label>
          ))}
        </fieldset>
        {error('rating')}
        <label>
          {t('title')}
          <input value={title} maxlength="200" dir="auto" oninput={(event: any) => this.change({ title: event.target.value })} {...field('title')} />
        </label>
        {error('title')}
        <label>
          {t('body')}
          <textarea value={body} dir="auto" oninput={(event: any) => this.change({ body: event.target.value })} {...field('body')}></textarea>
        </label>
        {error('body')}
        {error('form')}
        <div class="row">
          {action}
          <button type="button" part="button" onclick={cancel}>{t('cancel')}</button>
        </div>
      </form>
    );
  }
}
