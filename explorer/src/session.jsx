import { useEffect, useState } from 'react';

const SESSION = '{ viewer { name } signInMethods }';
const NOBODY = { viewer: null, signInMethods: [] };
const SIGN_OUT = 'mutation SignOut { signOut(input: {}) { __typename } }';

async function read(again = true) {
  const answer = await fetch(`/graphql?${new URLSearchParams({ query: SESSION })}`, {
    headers: { Accept: 'application/json' },
  });
  // An ended session is answered with 401, which takes its cookie away: the next answer is a visitor's. One that stays
  // all the same, as of another path, is not asked about without an end.
  if (answer.status === 401 && again) return read(false);
  // There may be no answer: at the service's limit, say, or where only trusted documents run.
  return (await answer.json()).data ?? NOBODY;
}

async function signOut() {
  await fetch('/graphql', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ query: SIGN_OUT }),
  });
}

/** Whom the cookie of this origin has signed in, as { viewer, signInMethods }, and a function that signs them out. */
export function useSession() {
  const [session, setSession] = useState(NOBODY);
  const refresh = () => read().then(setSession);
  useEffect(() => void refresh(), []);
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
