// What an editor types in a form, from the first letter until the service has taken it.
//
// A refusal stands at its field. If somebody else has changed the same thing meanwhile, nothing is overwritten: what
// they wrote stands below each field that differs, what was typed stays, and sending it again is then a decision.

import { type View, h } from '../base/dom';
import { newKey } from '../base/part';
import type { Doc } from '../service';
import { type Page, local, moment, time } from './area';

type Value = string | boolean;
export type Values = Record<string, Value>;

interface Control {
  tag?: 'input' | 'textarea' | 'select';
  hint?: string;
  [attribute: string]: any;
}

/** A local time over which the clock is put forward. */
const isLeaptOver = (typed: string) => Boolean(typed) && local(moment(typed)) !== typed.slice(0, 16);

/** Somebody else has changed it since it was read. */
const isConflict = ({ code, path }: { code?: string; path?: string[] | null }) => code === 'CONFLICT' && path?.at(-1) === 'revision';

export class Draft<V extends Values> {
  values: V;
  private refused: { name: string; message: string } | null = null;
  private theirs: Partial<V> = {};
  private isSending = false;
  private empty: V;

  /** `id` tells the forms of a page apart; `stored` are the values that the service has. */
  constructor(private page: Page, readonly id: string, private stored: V) {
    this.values = { ...stored };
    this.empty = stored;
  }

  /** What was typed that the service does not have. */
  get changed(): Partial<V> {
    return Object.fromEntries(Object.entries(this.values).filter(([name, value]) => value !== this.stored[name])) as Partial<V>;
  }

  get isChanged() {
    return Object.keys(this.changed).length > 0;
  }

  /**
   * Whether its form is open, and what was typed there would be lost: then that is said of `term`, what the form is
   * about, and the field `name` has the focus.
   */
  async comesFirst(term: string, name: keyof V & string): Promise<boolean> {
    const first = `#${this.id}-${name}`;
    if (!this.isChanged || !this.page.find(first)) return false;
    this.page.say(this.page.t('saveFirst', { term }));
    await this.page.focus(first);
    return true;
  }

  /** Takes back what was typed. */
  revert(name: keyof V) {
    this.values[name] = this.stored[name];
  }

  /** What somebody else wrote where something was typed here. */
  theirsOf(name: keyof V) {
    return this.theirs[name];
  }

  /** As it was at the beginning, for the next entry; what was typed since it was sent stays. */
  clear() {
    for (const name in this.values) if (this.values[name] === this.stored[name]) this.values[name] = this.empty[name]!;
    this.stored = this.empty;
    this.page.render();
  }

  /** A labelled control. Its `name` is that of the input's field, so that a refusal finds it. */
  field(name: keyof V & string, label: string, { tag = 'input', hint, ...control }: Control = {}, ...options: View[]): View {
    const id = `${this.id}-${name}`;
    const isCheck = control.type === 'checkbox';
    const message = this.refused?.name === name ? this.refused.message : '';
    const take = ({ currentTarget }: any) => {
      this.values[name] = isCheck ? currentTarget.checked : currentTarget.value;
      if (message) this.refused = null;
      this.page.render();
    };
    const value = isCheck ? { checked: this.values[name] } : { value: this.values[name] };
    const described = [message && `${id}-refused`, name in this.theirs && `${id}-theirs`, hint && `${id}-hint`].filter(Boolean).join(' ');
    // Of a year with more than four digits, which the keyboard would go on with, there is no moment.
    const bounds = control.type === 'datetime-local' && { max: '9999-12-31T23:59' };
    const props = { ...bounds, ...control, ...value, id, name, oninput: take, 'aria-invalid': message && 'true', 'aria-describedby': described || null };
    return (
      <div key={id} class="stack tight">
        {isCheck ? <label class="pick">{h(tag, props)}{label}</label> : <label>{label}{h(tag, props, ...options)}</label>}
        {message && <p id={`${id}-refused`} class="error">{message}</p>}
        {name in this.theirs && <p id={`${id}-theirs`} class="error body" dir="auto">{this.page.t('theirs', { value: this.shown(`${this.theirs[name]}`, tag, control.type) })}</p>}
        {hint && <p id={`${id}-hint`} class="soft">{hint}</p>}
      </div>
    );
  }

  /** A value as it is read. */
  private shown(value: string, tag: string, type?: string) {
    if (!value) return '—';
    if (type === 'datetime-local') return time(this.page, value);
    return tag === 'select' ? this.page.t(value) : value;
  }

  /** Null if the form is being sent already: pressing again while that takes its time adds nothing twice. */
  async once<T>(send: () => Promise<T>): Promise<T | null> {
    if (this.isSending) return null;
    this.isSending = true;
    try {
      return await send();
    } finally {
      this.isSending = false;
    }
  }

  /**
   * What the service answers; null if it refused, which then stands in the form. `reread` has the draft follow what is
   * stored now, once it was taken or if somebody else has changed or removed it.
   */
  async send(document: Doc<any, any>, input: object, reread?: () => Promise<unknown>): Promise<any> {
    if (await this.hasLeaptOver()) return null;
    const answer = await this.once(() => this.sendNow(document, input, reread));
    if (!answer?.code) return answer;
    if (isConflict(answer)) this.page.say(this.page.t('changedMeanwhile'));
    else await this.refuse(answer);
    return null;
  }

  /** Whether a time was typed that does not exist, which is then said at its field. */
  private async hasLeaptOver() {
    const isTime = (name: string) => this.page.find<HTMLInputElement>(`#${this.id}-${name}`)?.type === 'datetime-local';
    const name = Object.keys(this.values).find((one) => isTime(one) && isLeaptOver(`${this.values[one]}`));
    if (name) await this.refuse({ code: '', message: this.page.t('noSuchTime'), path: [name] });
    return Boolean(name);
  }

  private async sendNow(document: Doc<any, any>, input: object, reread?: () => Promise<unknown>): Promise<any> {
    this.refused = null;
    const sent = { ...this.values };
    const answer = await this.page.mutate(document, { input: { ...input, idempotencyKey: newKey() } });
    if (answer && !answer.code) {
      this.stored = sent;
      this.theirs = {};
    }
    // Before it can be sent again, with the revision that it has now.
    if (answer && (!answer.code || answer.code === 'NOT_FOUND' || isConflict(answer))) await reread?.();
    return answer;
  }

  /** Shows a refusal at the field that its path names, or where the page says what happened. */
  async refuse(answer: { code: string; message: string; path?: string[] | null }) {
    const name = [...(answer.path ?? [])].reverse().find((step) => step in this.values);
    if (name) this.refused = { name, message: answer.message };
    this.page.say(this.page.refusal(answer));
    if (name) await this.page.focus(`#${this.id}-${name}`);
  }

  /** Takes what is stored now where nothing was typed here, and marks where somebody else wrote something else. */
  follow(now: V) {
    const others = Object.keys(now).filter((name) => now[name] !== this.stored[name]);
    for (const name of others) {
      if (this.values[name] === this.stored[name]) (this.values as Values)[name] = now[name]!;
      else (this.theirs as Values)[name] = now[name]!;
    }
    for (const name in this.theirs) if (this.values[name] === now[name]) delete this.theirs[name];
    this.stored = now;
    this.page.render();
  }
}
