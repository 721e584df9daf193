// What every part of a page shares: its session with the service, requests, and streams.
//
// A page of the service's own origin is known by its cookie. A page of another origin sends a token: a member's, or
// that of a visit, which it starts with the first mutation. Reads by visitors carry no token and no header of their own,
// so that browsers send them without asking first.

import { START_VISIT } from './generated/first';

/** The id of a document that the service knows, or the text of one, with the types of its answer and variables. */
export type Doc<Data, Variables> = string & { readonly of?: [Data, Variables] };

export interface Token {
  token: string;
  expiresAt: string;
}

export interface Refused {
  code: string;
  message: string;
  path?: string[] | null;
  retryAfterSeconds?: number | null;
  /** The id of what is in the way. */
  existing?: string | null;
}

/** Why there is no answer: the service's error, or that it cannot be reached (OFFLINE). */
export class Failed extends Error {
  constructor(readonly code: string, message?: string, readonly retryAfterSeconds = 0) {
    super(message);
  }
}

// ── the session ──

export const base = new URL(/* @vite-ignore */ './', import.meta.url);
const api = new URL('graphql', base);
export const isElsewhere = api.origin !== location.origin;
const storedAs = `ringside ${base}`;

/** Whom this page's requests are from. It tells its listeners of each `change` of the member. */
export class Session extends EventTarget {
  member: Token | null = null;
  visit: Token | null = null;
  /** The visit that is being started: what else needs one waits for it. */
  declare starting?: Promise<unknown> | null;
  /** What this page knows to be stored. */
  private declare stored?: string | null;

  constructor() {
    super();
    this.load();
    addEventListener('storage', () => this.load());
    addEventListener('pageshow', () => this.load()); // of one that is gone back to, which has heard of nothing
  }

  /** Signs the page in with a member's token, or out with null. */
  use(member: Token | null) {
    this.keep({ member });
    this.dispatchEvent(new Event('change'));
  }

  /** Opens the service's page for signing in: a window of its own for a page of another origin. */
  signIn() {
    // At once, since browsers open windows only for clicks.
    const opened = isElsewhere ? open('', '_blank', 'popup,width=480,height=680') : null;
    return import('./sign-in-window').then((module) => module.default(base, opened, this, ask), () => opened?.close());
  }

  keep(changed: { member?: Token | null; visit?: Token | null }) {
    this.load(); // what another page has kept, of which this one may not have heard yet
    Object.assign(this, changed);
    const kept = JSON.stringify({ member: this.member, visit: this.visit });
    try {
      localStorage.setItem(storedAs, kept);
      this.stored = kept;
    } catch { /* blocked or full: until the page is closed */ }
  }

  /** Forgets a token that the service refused: null is a cookie's, which an answer over HTTP deletes. */
  drop(authorization: string | null) {
    this.load(); // it may be another page's no more
    if (authorization !== this.authorization) return;
    if (this.member || !isElsewhere) this.use(null);
    else this.keep({ visit: null });
  }

  get authorization() {
    if (this.member) return `Bearer ${this.member.token}`;
    return this.visit && `Visitor ${this.visit.token}`;
  }

  /** Whether a mutation needs a visit first, or a newer one: ten days before its end. */
  get lacksVisit() {
    return isElsewhere && !this.member && !(Date.parse(this.visit?.expiresAt!) - Date.now() > 864_000_000);
  }

  /**
   * Takes over what is stored, unless this page has stored it. On the service's own origin, where nothing but a change
   * of the cookie's member is noted there, all that is new is one.
   */
  private load() {
    const before = this.member?.token;
    try {
      const stored = localStorage.getItem(storedAs);
      if (stored == this.stored) return; // nothing is null there, and undefined here
      this.stored = stored;
      Object.assign(this, { member: null, visit: null }, JSON.parse(stored!));
      if (!isElsewhere || before !== this.member?.token) this.dispatchEvent(new Event('change'));
    } catch { /* blocked, or something else is stored there */ }
  }
}

export const session = new Session();

if (isElsewhere && /^#ringside-code=/.test(location.hash))
  import('./sign-in-window').then((module) => module.takeCode(session, ask));

// ── requests ──

/** The request's parameters: the id of a known document, or the text. */
const parameters = (document: string, variables: object) =>
  known(document) ? { documentId: document.slice(1), variables } : { query: document, variables };
const known = (document: string) => /^[qpmsv][\da-f]{10}$/.test(document);
/** Whether it changes something, beyond starting a visit. */
const isMutation = (document: string) => /^m[\da-f]{10}$|(^|})\s*mutation\b/m.test(document) && !/startVisit/.test(document);

/**
 * The data of an operation's answer; Failed if there is none. A visitor's mutation starts a visit where it needs one. A
 * token that has ended is dropped; a query, and what a visitor asked, is then asked once more, without it.
 */
export async function ask<Data, Variables extends object>(
  document: Doc<Data, Variables>,
  variables: Variables = {} as Variables,
  again = true,
): Promise<Data> {
  const changes = isMutation(document);
  if (changes) {
    await session.starting;
    if (session.lacksVisit) await (session.starting ??= ask(START_VISIT).finally(() => (session.starting = null)));
  }
  const authorization = session.authorization;
  const body = parameters(document, variables);
  const isRead = /^q[\da-f]{10}$/.test(document);
  try {
    const response = await (isRead && !session.member
      ? fetch(`${api}?documentId=${body.documentId}&variables=${encodeURIComponent(JSON.stringify(variables))}`)
      : fetch(api, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...(authorization && { authorization }) },
          // Half a character, which programs that cut texts leave, is one that is missing: no request may have it.
          body: JSON.stringify(body, (_, value) => value?.toWellFormed?.() ?? value),
        }));
    const refused = { 408: 'OFFLINE', 413: 'TOO_LARGE' }[response.status];
    if (refused) throw new Failed(refused);
    const { data, errors } = await response.json();
    if (response.status === 401 && again) {
      // A read drops no cookie: elements would then ask again, and where a browser keeps the cookie, without an end.
      if (authorization || changes) session.drop(authorization);
      if (!changes || /^V/.test(authorization!)) return ask(document, variables, false);
    }
    if (data && !errors) {
      if (data.startVisit?.token) session.keep({ visit: data.startVisit });
      return data;
    }
    const { message, extensions = {} } = errors[0];
    throw new Failed(extensions.code, message, extensions.retryAfterSeconds ?? response.headers.get('retry-after'));
  } catch (problem) {
    if (problem instanceof Failed) throw problem;
    throw new Failed('OFFLINE', `${problem}`);
  }
}

// ── streams ──

let streams: Promise<ReturnType<typeof import('./streams').default>>;
/** Their script, which is asked for again if it was dropped on its way: all that is live on the page waits for it. */
export const loadStreams = (): Promise<typeof import('./streams')> =>
  import('./streams').catch(() => new Promise((go) => setTimeout(() => go(loadStreams()), 10_000)));

/**
 * Calls `take` with each event of a subscription until the function that it returns is called. A stream that broke is
 * resumed after the last event, if the subscription takes `after`. `state` is told whether the stream is connected.
 */
export function live<Data, Variables extends object>(
  document: Doc<Data, Variables>,
  variables: Variables,
  take: (data: Data) => void,
  state?: (isLive: boolean) => void,
): () => void {
  streams ??= loadStreams().then((module) => module.default(api, session));
  const opened = streams.then((open) => open({ parameters: parameters(document, { ...variables }), take, state }));
  return () => opened.then((end) => end());
}
