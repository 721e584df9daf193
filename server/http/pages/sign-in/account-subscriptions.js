// The member's subscriptions to daily words, in the account. Loaded once it is opened.

import { ask, asked, button, by, change, isolated, make, say, signedIn, tell } from './sign-in.js';

const { Subscriptions, Unsubscribe } = asked.documents;

// A suspended member may end none.
export async function fillSubscriptions() {
  if (signedIn.suspension) return;
  const viewer = await ask(Subscriptions);
  if (!viewer?.subscriptions.length || viewer.id !== signedIn?.id) return;
  by('own-subscriptions').replaceChildren(...viewer.subscriptions.map(row));
  by('subscriptions').hidden = false;
}

function row({ list, characterSet, active }) {
  const name = isolated(list.name), item = make('li');
  const label = characterSet === 'TRADITIONAL' ? `${name} · ${say('traditional')}` : name;
  const text = make('span', { textContent: label });
  text.append(` · ${say(active ? 'emailsOn' : 'emailsOff')}`);
  item.append(text);
  if (!active) return item;
  item.append(button('unsubscribe', label, async () => {
    const { subscription } = await change(Unsubscribe, { list: list.id, characterSet }, { NOT_FOUND: 'listGone' });
    item.replaceWith(row(subscription));
    by('subscriptions-title').focus();
    tell(say('unsubscribed', { label }));
  }));
  return item;
}
