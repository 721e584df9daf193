// Signing in: on the service's own origin by its page, elsewhere by a window of it, which posts the token to this origin.
// A page that has no window, or has lost it by its policy, is led back to with a code, which it takes for a token.

import { CONTINUE_VISIT, SIGN_IN } from './generated/sign-in-window';
import type { Session, Token, ask } from './service';

const ASKED = 'ringside signing in';
/** Milliseconds for which a code is waited for. */
const LONGEST = 3_600_000;

export default (base: URL, opened: Window | null, session: Session, send: typeof ask) => {
  const page = new URL('sign-in', base);
  const isOwn = base.origin === location.origin;
  page.searchParams.set('returnTo', back(isOwn));
  // Whose button was pressed has the focus.
  const { lang } = (document.activeElement ?? document.body).closest<HTMLElement>('[lang]') ?? document.documentElement;
  if (lang) page.searchParams.set('language', lang.replace('_', '-'));
  if (!isOwn) note(String(Date.now()));
  if (!opened) {
    location.assign(page);
    return;
  }
  const state = crypto.getRandomValues(new Uint32Array(4)).join('-');
  page.searchParams.set('origin', location.origin);
  page.searchParams.set('state', state);
  const take = ({ source, origin, data }: MessageEvent) => {
    if (source !== opened || origin !== base.origin || data?.type !== 'ringside:signed-in' || data.state !== state) return;
    removeEventListener('message', take);
    note(null);
    goOn(session, send, { token: data.token, expiresAt: data.expiresAt });
  };
  addEventListener('message', take);
  opened.location.replace(page);
};

/** This page's address, in letters that the service takes; of a very long one the origin. */
function back(isOwn: boolean) {
  const place = isOwn ? location.pathname + location.search + location.hash : location.href;
  const plain = place.replace(/["<>\\^`{|}]/g, encodeURIComponent);
  return encodeURIComponent(plain).length <= 2000 ? plain : isOwn ? '/' : `${location.origin}/`;
}

/** Notes that a code is waited for: one that somebody else leads here with, in a link say, is not taken. */
function note(asked: string | null) {
  try {
    if (asked) localStorage.setItem(ASKED, asked);
    else localStorage.removeItem(ASKED);
  } catch { /* blocked: then only a window signs in */ }
}

function isWaitedFor() {
  try {
    return Date.now() - Number(localStorage.getItem(ASKED)) < LONGEST;
  } catch {
    return false;
  }
}

/** Signs in by the code that the page's address has, and takes it out of there. */
export async function takeCode(session: Session, send: typeof ask) {
  const token = location.hash.slice(location.hash.indexOf('=') + 1);
  history.replaceState(history.state, '', location.href.split('#')[0]);
  if (!isWaitedFor()) return;
  note(null);
  const signIn = (await answer(() => send(SIGN_IN, { token })))?.signIn;
  if (signIn?.__typename === 'SignedIn') session.use({ token: signIn.token!, expiresAt: signIn.expiresAt });
}

// As a visitor of this page they may have voted: the member goes on with that, before anything is drawn for them. Other
// pages know of the member by what is stored, which is therefore done last.
async function goOn(session: Session, send: typeof ask, member: Token) {
  const visit = session.visit?.token;
  const asMember = () => {
    session.member = member;
    return send(CONTINUE_VISIT, { visit: visit! });
  };
  if (visit) await answer(asMember);
  session.use(member);
}

/** The answer to a request that is sent again for a while, as long as it cannot be answered; or why there is none. */
async function answer<T extends object>(request: () => Promise<T>): Promise<Partial<T> | undefined> {
  for (let wait = 0.5; wait < 16; wait *= 2) {
    const answered: any = await request().catch((failed) => ({ failed }));
    const [{ code }]: any[] = Object.values(answered);
    if (!/^(OFFLINE|UNAVAILABLE|OVERLOADED)$/.test(code)) return answered;
    await new Promise((go) => setTimeout(go, wait * 1000));
  }
}
