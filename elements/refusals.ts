// What the service refuses, in an element's language: loaded with the first refusal on a page that is not in English.

import type { Part } from './base/part';
import type { Refused } from './service';

const TEXTS: Record<string, () => Promise<{ default: Record<string, string> }>> = {
  de: () => import('./refusals/de.json'),
  es: () => import('./refusals/es.json'),
  ar: () => import('./refusals/ar.json'),
};

/**
 * Replaces each message by the text for the refusal's code, or for the code with a detail: the field at fault, that there
 * is a time to wait for, or that a guest asked. The service's message stays where there is no text.
 */
export default async (part: Part<any>, refused: Refused[]) => {
  const { default: texts } = await TEXTS[part.language.split('-')[0]!]!();
  for (const each of refused) {
    const { code, path, retryAfterSeconds } = each;
    const details = [path?.[1], retryAfterSeconds && 'until', (part as any).viewer?.isGuest && 'guest'];
    const text = details.map((detail) => texts[`${code} ${detail}`]).find(Boolean) ?? texts[code];
    if (text) each.message = part.t(text, { time: part.duration(retryAfterSeconds!) });
  }
};
