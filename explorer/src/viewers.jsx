import { useState } from 'react';

// In a demo on the visitor's own machine the page lists members to sign in as: { name, token } each. Otherwise it lists
// none, and there is no menu.
const { content } = document.querySelector('meta[property="demo-viewers"]');
const viewers = content ? JSON.parse(content) : [];
const STORED = 'ringside:viewer';

function selected() {
  const name = sessionStorage.getItem(STORED);
  return viewers.find((viewer) => viewer.name === name);
}

export function viewerHeaders() {
  const viewer = selected();
  return viewer ? { Authorization: `Bearer ${viewer.token}` } : {};
}

export function ViewerMenu() {
  const [name, setName] = useState(selected()?.name ?? '');
  if (viewers.length === 0) {
    return null;
  }
  const select = (event) => {
    sessionStorage.setItem(STORED, event.target.value);
    setName(event.target.value);
  };
  return (
    <label className="viewer-menu">
      {'Signed in as '}
      <select value={name} onChange={select}>
        <option value="">visitor</option>
        {viewers.map((viewer) => (
          <option key={viewer.name}>{viewer.name}</option>
        ))}
      </select>
    </label>
  );
}
