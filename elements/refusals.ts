// What the service refuses, in an element's language: loaded with the first refusal on a page that is not in English.

import type { Part } from './base/part';
import type { Refused } from './service';

const TEXTS: Record<string, () => Promise<{ default: Record<string, string> }>> = {
  de: () => import('./refusals/de.json'),
  es: () => import('./refusals/es.json'),
  ar: () => import('./refusals/ar.json'),
};

/**
 * Replaces each message by the text for the refusal's code, or for the code with a detail: that there is a time to wait
 * for, the field at fault, or that a guest asked. Who is suspended reads why, too, where the part knows it. The service's
 * message stays where there is no text.
 */
export default async (part: Part<any>, refused: Refused[]) => {
  const { default: texts } = await TEXTS[part.language.split('-')[0]!]!();
  for (const each of refused) {
    const { code, path, retryAfterSeconds } = each;
    const { isGuest, suspension } = (part as any).viewer ?? {};
    const details = [retryAfterSeconds && 'until', path?.[1], isGuest && 'guest'];
    const text = details.map((detail) => texts[`${code} ${detail}`]).find(Boolean) ?? texts[code];
    const reason = path?.[1] === 'suspension' && suspension ? ` \u2068${suspension.reason}\u2069` : '';
    if (text) each.message = part.t(text, { time: part.duration(retryAfterSeconds!) }) + reason;
  }
};
