// Signing in: on the service's own origin by its page, elsewhere by a window of it, which posts the token to this origin.

import type { Session } from './service';

export default (base: URL, opened: Window | null, session: Session) => {
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
    session.use({ token: data.token, expiresAt: data.expiresAt });
  };
  addEventListener('message', take);
  opened.location.replace(page);
};
