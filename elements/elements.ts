// The script of a page: it defines the elements. As soon as one is on the page, its first request is sent and the script
// of its part loaded, at the same moment.

import { type Doc, Failed, ask, base, isElsewhere, live, loadStreams, session } from './service';
import { BOARD, COMMENTS, EVENT, LATEST_SEASON, NEXT_EVENT, STANDINGS, VIEWER, WORD, WORDS } from './generated/first';
import type { Part } from './base/part';

/** The nearest element with a language, also around the shadow roots that this one is in. */
const speaking = (element?: Element): HTMLElement =>
  element ? (element.closest<HTMLElement>('[lang]') ?? speaking((element.getRootNode() as ShadowRoot).host)) : document.documentElement;

export const ringside = { ask, live, session, base, isElsewhere, Failed, speaking };
export type Ringside = typeof ringside;
export { ask, live, session };

type Attributes = (name: string) => string | null;
type Request = [Doc<any, any>, object];

/** An element's attributes, how its part is loaded, and what the first paint needs. */
type Definition = [
  attributes: string[],
  load: () => Promise<{ default: new (host: HTMLElement, ringside: Ringside, texts: any) => Part<any> }>,
  first: (get: Attributes) => Request,
];

const DEFINITIONS: Record<string, Definition> = {
  board: [
    ['board'],
    () => import('./board/board'),
    (get) => [BOARD, { board: get('board') ?? 'main' }],
  ],
  comments: [
    ['product', 'languages', 'order', 'rated'],
    () => import('./comments/comments'),
    (get) => [COMMENTS, { product: get('product') ?? '', languages: get('languages')?.match(/[^\s,]+/g) ?? [], ratings: [], verified: null, order: get('order') === 'helpful' ? 'HELPFUL' : 'NEWEST', after: null }],
  ],
  event: [
    ['event', 'season'],
    () => import('./event/event'),
    (get) => ((get('event') ?? 'next') === 'next' ? [NEXT_EVENT, { season: get('season') }] : [EVENT, { event: get('event') }]),
  ],
  standings: [
    ['season', 'league'],
    () => import('./standings/standings'),
    (get) => (get('season') ? [STANDINGS, { season: get('season') }] : [LATEST_SEASON, {}]),
  ],
  word: [
    ['list', 'quiz'],
    () => import('./word/word'),
    (get) => (get('list') ? [WORD, { list: get('list') }] : [WORDS, {}]),
  ],
  'sign-in': [
    [],
    () => import('./sign-in/sign-in'),
    () => [VIEWER, {}],
  ],
};

const TEXTS: Record<string, () => { default?: object } | Promise<{ default?: object }>> = {
  en: () => ({}),
  de: () => import('translated:texts/de'),
  es: () => import('translated:texts/es'),
  ar: () => import('translated:texts/ar'),
};

/**
 * The texts of an element's language, with the language; none for English, which each part has. Programs that make pages
 * write it as `de_DE`, too, in capitals, or with more behind it than browsers read.
 */
async function texts(element: HTMLElement) {
  const wanted = /^[a-z]*(-([a-z]{2}|\d{3})\b)?/.exec(speaking(element).lang.toLowerCase().replace('_', '-'))![0];
  const loaded = await TEXTS[wanted.split('-')[0]!]?.();
  return loaded && { ...loaded.default, language: wanted };
}

/** How often who is signed in has changed: of a cookie's member, nothing else is known here. */
let changes = 0;
session.addEventListener('change', () => changes++);

for (const [name, [attributes, load, first]] of Object.entries(DEFINITIONS)) {
  const tag = `ringside-${name}`;
  if (customElements.get(tag)) continue;
  customElements.define(
    tag,
    class extends HTMLElement {
      static observedAttributes = [...attributes, 'lang'];
      #part?: Part<any> | null;
      /** The attributes' part that is being loaded. */
      #begun?: object | null;

      connectedCallback() {
        if (!this.shadowRoot) this.attachShadow({ mode: 'open' }).append(document.createElement('slot'));
        if (!(this.#part || this.#begun)) this.#start();
      }

      /** An element that was only moved is connected again before this goes on. */
      disconnectedCallback() {
        queueMicrotask(() => {
          if (this.isConnected) return;
          this.#part?.stop();
          this.#part = null;
        });
      }

      /** Frameworks set an attribute again to what it is: that changes nothing. */
      attributeChangedCallback(_: string, before: string | null, now: string | null) {
        if (before === now || !this.shadowRoot) return;
        this.#part?.stop();
        this.#part = this.#begun = null;
        if (this.isConnected) this.#start();
      }

      /** Several attributes may be set at once, and others while the part is loaded. */
      #start() {
        const begun = (this.#begun = {});
        queueMicrotask(async () => {
          if (begun !== this.#begun) return;
          const before = changes;
          const request = first((attribute) => this.getAttribute(attribute) || null);
          const answer = ask(...request);
          const arrival = answer.then(Date.now, () => {}); // the part looks at what failed
          try {
            const [{ default: PartOf }, translated] = await Promise.all([load(), texts(this), import('./base/part'), loadStreams()]);
            if (begun !== this.#begun) return;
            if (before !== changes) return this.#start(); // the answer is for whoever they were
            this.#begun = null;
            if (!this.isConnected) return;
            this.#part = new PartOf(this, ringside, translated);
            this.#part.start(answer, request, arrival);
          } catch (problem) {
            console.error(problem);
            if (begun !== this.#begun) return;
            this.#begun = null;
            setTimeout(() => this.isConnected && this.connectedCallback(), 10_000); // the service may have been starting
          }
        });
      }
    },
  );
}
