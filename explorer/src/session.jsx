import { useEffect, useState } from 'react';

// Where this origin's pages keep the token of a member who has no cookie, as whom the admin pages sign in for a demo.
const STORED = `ringside ${window.location.origin}/`;
const SESSION = '{ viewer { name } signInMethods }';
const NOBODY = { viewer: null, signInMethods: [] };
const SIGN_OUT = 'mutation SignOut { signOut(input: {}) { __typename } }';

let refused;

/** By the token's own claims: of a demo's no other time is kept. */
function hasEnded(token) {
  const [, claims] = token.split('.');
  const { exp } = JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/')));
  return exp * 1000 <= Date.now();
}

function token() {
  try {
    const { token } = JSON.parse(localStorage.getItem(STORED)).member;
    return token === refused || hasEnded(token) ? null : token;
  } catch {
    return null; // nobody's
  }
}

export function sessionHeaders() {
  const own = token();
  return own ? { Authorization: `Bearer ${own}` } : {};
}

async function read(again = true) {
  const own = token();
  const answer = await fetch(`/graphql?${new URLSearchParams({ query: SESSION })}`, {
    headers: { Accept: 'application/json', ...sessionHeaders() },
  });
  if (answer.status === 401 && own) refused = own;
  // An ended session is answered with 401, which takes its cookie away: the next answer is a visitor's. One that stays
  // all the same, as of another path, is not asked about without an end. After a token it is the cookie's turn.
  if (answer.status === 401 && again) return read(Boolean(own));
  // There may be no answer: at the service's limit, say, or where only trusted documents run.
  return (await answer.json()).data ?? NOBODY;
}

async function signOut() {
  await fetch('/graphql', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...sessionHeaders() },
    body: JSON.stringify({ query: SIGN_OUT }),
  });
  localStorage.removeItem(STORED);
}

/** Whom this origin's cookie or pages have signed in, as { viewer, signInMethods }, and a function that signs them out. */
export function useSession() {
  const [session, setSession] = useState(NOBODY);
  const refresh = () => read().then(setSession);
  useEffect(() => {
    const changed = ({ key }) => [STORED, null].includes(key) && refresh(); // by another tab
    window.addEventListener('storage', changed);
    refresh();
    return () => window.removeEventListener('storage', changed);
  }, []);
  return [session, () => signOut().then(refresh)];
}

export function SessionButton({ session: { viewer, signInMethods }, onSignOut }) {
  if (viewer) {
    return (
      <button className="graphiql-button session" type="button" onClick={onSignOut}>
        Sign out
      </button>
    );
  }
  return (
    signInMethods.length > 0 && (
      <a className="graphiql-button session" href="/sign-in?returnTo=/graphql">
        Sign in
      </a>
    )
  );
}
