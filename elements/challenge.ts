// A proof of work, where the site asks for one: loaded when a comment was refused without it.

import { solve } from '../server/http/pages/sign-in/challenge.js';
import { CHALLENGE } from './generated/challenge';
import type { ask } from './service';

/** What to send as `solution`; null if none is asked for any more, or the service does not answer. */
export default async (send: typeof ask) => {
  const answer = await send(CHALLENGE).catch(() => null);
  return answer?.challenge ? solve(answer.challenge) : null;
};
