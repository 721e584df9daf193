// What all elements have in common: their frame, texts, messages, requests that go on until they are answered.

import { type View, h, patch } from './dom';
import common from 'english:common';
import css from './base.css?inline';
import type { Doc, Refused, live } from '../service';
import type { Ringside } from '../elements';

type Text = string | Record<string, string>;
type Texts = Record<string, Text>;
/** Texts of another language, in the order of the English ones; null where it has none. */
export type Translated = (Text | null)[];

const sheets: Record<string, CSSStyleSheet> = {};

function sheet(text: string) {
  if (!sheets[text]) (sheets[text] = new CSSStyleSheet()).replaceSync(text);
  return sheets[text]!;
}

const inLanguage = (english: Texts, translated?: Translated) =>
  Object.fromEntries(Object.entries(english).map(([name, text], place) => [name, translated?.[place] ?? text]));

/** Waits so long, or until the browser has a connection again. */
export const pause = (seconds: number) =>
  new Promise((go) => {
    const forget = on(window, 'online', go);
    setTimeout(() => go(forget()), seconds * 1000);
  });

export abstract class Part<Data> {
  /** The language of the texts, with the region that the page says. */
  declare language: string;
  /** The language as the reader's browser prefers it: dates differ between regions. */
  private declare locale: string;
  declare isStopped?: boolean;
  /** Who is signed in, as far as the element shows it. */
  protected declare viewer?: object | null;
  /** By how much the server's clock is ahead of this one, in milliseconds. */
  protected declare ahead: number;
  private root = document.createElement('div');
  private live = document.createElement('p');
  private views: View[] = [];
  private declare waits?: boolean;
  /** How often the member has changed. */
  since = 0;
  said = '';
  private ends: (() => void)[] = [];
  protected declare endStream?: () => void;
  private declare texts: Texts;
  /** What loads further texts of the language; none for English. */
  declare readonly further?: {
    writing(): Promise<{ default: Translated }>;
    /** Puts the messages of what was refused into the element's language; the service writes them in English. */
    refusal(part: Part<any>, ...fields: unknown[]): Promise<void>;
  };
  /** The document of the first paint, and its variables. */
  protected declare first?: [Doc<Data, any>, object];
  /** How often was asked. */
  protected turn = 0;

  declare readonly host: HTMLElement;
  declare readonly ringside: Ringside;

  constructor(
    host: HTMLElement,
    ringside: Ringside,
    translated: any,
    name: string,
    english: Texts,
    style: string,
  ) {
    this.host = host;
    this.ringside = ringside;
    this.language = translated?.language ?? 'en';
    this.further = translated?.further;
    const [bare] = this.language.split('-');
    this.locale = navigator.languages.find((one) => one.split('-')[0] === this.language) ?? this.language;
    this.texts = { ...inLanguage(common, translated?.common), ...inLanguage(english, translated?.[name]) };
    const shadow = host.shadowRoot!;
    shadow.adoptedStyleSheets = [sheet(css), sheet(style)];
    Object.assign(this.root, { className: 'root', part: 'root', lang: this.language, dir: bare === 'ar' ? 'rtl' : 'ltr' });
    Object.assign(this.live, { className: 'hidden', role: 'status' });
    shadow.replaceChildren(this.root);
    this.root.append(document.createElement('div'), this.live);
    this.until(on(ringside.session, 'change', () => {
      this.since++;
      this.root.classList.remove('refused');
      this.say(''); // it was for whoever they were
      this.signedInOrOut();
    }));
  }

  /** Shows what the first request answers, and asks it again as long as there is no answer. */
  async start(asked: Promise<Data>, request: [Doc<any, any>, object], arrival?: Promise<number | void>) {
    this.render();
    this.first = request;
    await this.showLatest(this.askFirst(asked), arrival);
  }

  /** The answer to the first request, which may be on its way. */
  private askFirst(asked?: Promise<Data> | null) {
    return this.insist(() => {
      const answer = asked ?? this.ringside.ask(...this.first!);
      asked = null;
      return answer;
    });
  }

  /** Of several answers the one to the latest question counts. */
  protected async showLatest(asked: Promise<Data | null>, arrival?: Promise<number | void>) {
    const turn = ++this.turn;
    const answer: any = await asked;
    // The script of the part may have come long after the first answer.
    if (answer?.now) this.ahead = Date.parse(answer.now) - ((await arrival) ?? Date.now());
    if (this.isStopped || turn !== this.turn) return;
    if (answer) this.arrived(answer);
    else this.root.classList.add('refused');
  }

  stop() {
    this.isStopped = true;
    this.endStream?.();
    this.ends.forEach((end) => end());
  }

  /** Calls `end` when the element leaves the page. */
  until(end: () => void) {
    this.ends.push(end);
  }

  /** Asks again, as somebody else. */
  protected askAgain() {
    return this.showLatest(this.askFirst());
  }

  protected abstract arrived(data: Data): void;
  protected abstract view(): View;

  /** Another member's page, or a visitor's. */
  protected signedInOrOut(): void {}

  /** Adds the looks and texts of what is loaded later. */
  extend(style: string, english: Texts, translated?: Translated) {
    this.host.shadowRoot!.adoptedStyleSheets.push(sheet(style));
    Object.assign(this.texts, inLanguage(english, translated));
  }

  // ── texts ──

  /** A text in the element's language. `{name}` stands for a value; `n` decides between singular and plural. */
  t = (key: string, values: Record<string, string | number> = {}): string => {
    const found: any = this.texts[key] ?? key;
    const text: string = found.other ? (found[new Intl.PluralRules(this.language).select(+values.n!)] ?? found.other) : found;
    return text.replace(/{(\w+)}/g, (_, name: string) => {
      const value = values[name] ?? '';
      return typeof value === 'number' ? this.number(value) : value;
    });
  };

  number = (value: number, options?: Intl.NumberFormatOptions) => new Intl.NumberFormat(this.locale, options).format(value);
  date = (iso: string, options: Intl.DateTimeFormatOptions = { dateStyle: 'medium' }) =>
    new Intl.DateTimeFormat(this.locale, options).format(new Date(iso));

  /** A duration by its two largest units. */
  duration(seconds: number) {
    let left = Math.max(0, Math.ceil(seconds));
    const parts = Object.entries({ day: 86_400, hour: 3_600, minute: 60, second: 1 }).map(([unit, size]) => {
      const value = Math.floor(left / size);
      left %= size;
      return [unit, value] as const;
    });
    const first = parts.findIndex(([, value]) => value);
    const shown = parts.slice(first).slice(0, 2).filter(([, value], place) => value || !place);
    return shown.map(([unit, value]) => this.number(value, { style: 'unit', unit, unitDisplay: 'long' })).join(' ');
  }

  /** What a refusal says to a reader: a text of ours for what is not about their input. */
  refusal({ code, message }: Refused) {
    return this.texts[code] ? this.t(code) : message;
  }

  /** Has a screen reader say it, and shows it where the view has its `note`. */
  say(text: string) {
    this.live.textContent = this.said = text;
    this.render();
  }

  note() {
    return h('p', { class: 'note', 'aria-hidden': 'true' }, h('span', { key: this.said }, this.said));
  }

  // ── the server's clock ──

  secondsTo(iso: string) {
    return (Date.parse(iso) - Date.now() - this.ahead) / 1000;
  }

  // ── requests ──

  /** Listens to a subscription in place of the one before; to none once the element has left the page. */
  protected listen<D, V extends object>(...subscription: Parameters<typeof live<D, V>>) {
    this.endStream?.();
    if (!this.isStopped) this.endStream = this.ringside.live(...subscription);
  }

  /**
   * The answer to a request that is sent again while the service cannot be reached, or its first field says that this
   * cannot be done now; null if it was refused, which is then said, or if the element has left.
   */
  async insist<T>(send: () => Promise<T>): Promise<T | null> {
    for (let wait = 0.5; !this.isStopped; wait = Math.min(wait * 2, 16)) {
      try {
        const answer: any = await send();
        const fields: any[] = Object.values(answer ?? {});
        const [first] = fields;
        await this.further?.refusal(this, ...fields);
        if (first?.code === 'UNAVAILABLE') throw Object.assign(new this.ringside.Failed(''), first);
        if (wait > 0.5) this.say('');
        return answer;
      } catch (failed: any) {
        if (!(failed instanceof this.ringside.Failed)) throw failed;
        await this.further?.refusal(this, failed);
        const { code, message, retryAfterSeconds } = failed;
        if (code === 'OFFLINE' && this.ringside.isElsewhere) hint(this.ringside.base);
        const text = this.refusal({ code: code.replace(/^PERSISTED_QUERY.*/, 'OUT_OF_DATE'), message });
        if (wait < 1 || text !== this.said) this.say(text); // a screen reader repeats it
        if (!/^(OFFLINE|UNAVAILABLE|OVERLOADED|RATE_LIMITED|INTERNAL)$/.test(code)) break;
        await pause(Math.max(wait, retryAfterSeconds));
      }
    }
    return null;
  }

  /**
   * The only field of a mutation's answer. The input has a key, so sent again it counts once. It is not sent again once
   * it was cancelled, or another page has signed in somebody else, in whose name it would be. A member who turns out to
   * be signed out is so here, too, unless somebody has signed in since.
   */
  async mutate<T>(document: Doc<T, any>, variables: object, isCancelled?: () => boolean, since = this.since): Promise<any> {
    const answer = await this.insist(() => {
      if (since !== this.since) throw new this.ringside.Failed('UNAUTHENTICATED');
      if (isCancelled?.()) throw new this.ringside.Failed(''); // nothing is said
      return this.ringside.ask(document, variables);
    });
    const [payload]: any[] = Object.values(answer ?? {});
    if (this.viewer && since === this.since && payload?.code === 'NOT_SIGNED_IN') this.ringside.session.use(null);
    return payload;
  }

  /** Tells the page what happens; false if it prevents what follows. */
  emit(name: string, detail: object) {
    return this.host.dispatchEvent(new CustomEvent(`ringside-${name}`, { detail, bubbles: true, composed: true, cancelable: true }));
  }

  // ── drawing ──

  /** Draws the view again, once, after the present piece of work. */
  render() {
    if (this.waits) return;
    this.waits = true;
    queueMicrotask(() => {
      this.waits = false;
      if (this.isStopped) return;
      patch(this.root.firstElementChild!, this.views, (this.views = [this.view()]));
    });
  }

  find<E extends HTMLElement>(selector: string) {
    return this.root.querySelector<E>(selector);
  }

  /** Draws, then moves the focus, unless by now it is at something else than this element and what that stands in. */
  async focus(selector: string) {
    this.render();
    await null;
    await null;
    if (isFree(this.host)) this.find(selector)?.focus();
  }

  /** Opens the sign-in, unless the page has one of its own and so prevents this. */
  signIn() {
    return this.emit('sign-in', {}) && this.ringside.session.signIn();
  }

  /** Shown where only members may do something. Not for the second click of a double one on what stood there before. */
  signInButton() {
    return h('button', { class: 'primary', part: 'button', type: 'button', onclick: ({ detail }: MouseEvent) => detail < 2 && this.signIn() }, this.t('signIn'));
  }
}

/** Whether the focus is at nothing else than this and what it stands in, also around the shadow roots that it is in. */
const isFree = (element: Element): boolean => {
  const { activeElement, host } = element.getRootNode() as ShadowRoot;
  return activeElement ? activeElement.contains(element) : !host || isFree(host);
};

let hinted: boolean | undefined;

/** Tells the site's developer, once, what browsers do not tell a page: whether the service allows pages of this origin. */
function hint({ origin }: URL) {
  if (!hinted) console.warn(`Does RINGSIDE_CORS_ORIGINS at ${origin} have ${location.origin}?`);
  hinted = true;
}

/** A key for a request that must count once, however often it is sent. */
export const newKey = () => crypto.getRandomValues(new Uint32Array(4)).join('-');

/** Listens until the function that is returned is called. */
export function on(target: EventTarget, type: string, listener: (event: any) => void) {
  target.addEventListener(type, listener);
  return () => target.removeEventListener(type, listener);
}

/** The address of a contender's picture. As an image, SVG neither runs scripts nor loads anything. */
export const picture = ({ svg, imageUrl }: { svg?: string | null; imageUrl?: string | null }) =>
  svg ? `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}` : imageUrl;
