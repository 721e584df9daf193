import { useState } from 'react';

import { SessionButton, sessionHeaders, useSession } from './session.jsx';

// In a demo on the visitor's own machine the page lists members to sign in as: { name, token } each. Otherwise it lists
// none, and whom the session has signed in is all there is.
const { content } = document.querySelector('meta[property="demo-viewers"]');
const viewers = content ? JSON.parse(content) : [];
const STORED = 'ringside:viewer';

function selected() {
  const name = sessionStorage.getItem(STORED);
  return viewers.find((viewer) => viewer.name === name);
}

export function viewerHeaders() {
  const viewer = selected();
  return viewer ? { Authorization: `Bearer ${viewer.token}` } : sessionHeaders();
}

export function ViewerMenu() {
  const [name, setName] = useState(selected()?.name ?? '');
  const [session, signOut] = useSession();
  const select = (event) => {
    sessionStorage.setItem(STORED, event.target.value);
    setName(event.target.value);
  };
  const own = session.viewer?.name;
  return (
    <div className="viewer-menu">
      {viewers.length > 0 ? (
        <label>
          {'Signed in as '}
          <select value={name} onChange={select}>
            <option value="">{own ?? 'visitor'}</option>
            {viewers.map((viewer) => (
              <option key={viewer.name}>{viewer.name}</option>
            ))}
          </select>
        </label>
      ) : (
        own && <span>Signed in as {own}</span>
      )}
      <SessionButton session={session} onSignOut={signOut} />
    </div>
  );
}
