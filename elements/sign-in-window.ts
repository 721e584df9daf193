// Signing in: on the service's own origin by its page, elsewhere by a window of it, which posts the token to this origin.

import { CONTINUE_VISIT } from './generated/sign-in';
import type { Session, ask } from './service';

export default (base: URL, opened: Window | null, session: Session, send: typeof ask) => {
  const page = new URL('sign-in', base);
  if (!opened) {
    page.searchParams.set('returnTo', base.origin === location.origin ? location.pathname + location.search + location.hash : location.href);
    location.assign(page);
    return;
  }
  const state = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
  page.search = String(new URLSearchParams({ origin: location.origin, state }));
  const take = ({ source, origin, data }: MessageEvent) => {
    if (source !== opened || origin !== base.origin || data?.type !== 'ringside:signed-in' || data.state !== state) return;
    removeEventListener('message', take);
    goOn(session, send, { token: data.token, expiresAt: data.expiresAt });
  };
  addEventListener('message', take);
  opened.location.replace(page);
};

// As a visitor of this page they may have voted: the member goes on with that, before anything is drawn for them.
async function goOn(session: Session, send: typeof ask, member: { token: string; expiresAt: string }) {
  const visit = session.visit?.token;
  session.keep({ member });
  if (visit) await send(CONTINUE_VISIT, { visit }).catch(() => null);
  session.use(session.member);
}
