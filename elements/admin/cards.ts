// Cards of matches as an editor types them, a line each, and whole seasons of them.

import { local } from './area';

interface Side {
  name?: string | null;
  members: string[];
  champion: boolean;
}

const CHAMPION = /\s*\(c\)\s*$/i;
const VERSUS = /\s+(?:v|vs|gegen|contra|ضد)\.?\s+/i;

/** The digits of Arabic and Persian keyboards as those of all others. */
const plain = (text: string) => text.replace(/[٠-٩۰-۹]/g, (digit) => String(digit.charCodeAt(0) & 15));

const split = (members: string) => members.split(/\s*[&,،，、]\s*/).map((name) => name.trim()).filter(Boolean);

/** A line of a card: `Ada & Bo v Cy`, with a name before a colon and points after a bar, if it has them. */
export function parseMatch(line: string) {
  const [, named, rest] = /^(?:([^:|]+):)?(.*)$/.exec(line)!;
  const [sides = '', typed = '1'] = rest!.split('|');
  const points = plain(typed);
  const teams = sides.split(VERSUS).map((side) => ({ members: split(side) }));
  // What is no number is refused with the line.
  return { name: (named ?? sides).trim(), points: /^\s*\d{1,4}\s*$/.test(points) ? Number(points) : 0, teams };
}

/** A side of a match as an editor types it: `The Bs: Ada & Bo (c)`, with a name and the mark of champions, if it has them. */
export const typedSide = ({ name, members, champion }: Side) => `${name ? `${name}: ` : ''}${members.join(' & ')}${champion ? ' (c)' : ''}`;

/** The sides that were typed, a line each. A line that one of them had `before` is that one, whatever its names have in them. */
export function parseSides(text: string, before: Side[]): Side[] {
  return text.split('\n').map((line) => line.trim()).filter(Boolean).map((line) => {
    const same = before.find((side) => typedSide(side) === line);
    if (same) return same;
    const [, name, members] = /^(?:([^:]+):)?(.*)$/.exec(line.replace(CHAMPION, ''))!;
    return { name: name?.trim() || null, members: split(members!), champion: CHAMPION.test(line) };
  });
}

const TYPED = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?$/;

/** A whole local time as the service takes it. It refuses all else, and a day or an hour that does not exist. */
function beginning(text: string) {
  const typed = text.replace(' ', 'T');
  const at = Date.parse(TYPED.test(text) ? typed : '');
  if (Number.isNaN(at)) return text;
  const iso = new Date(at).toISOString();
  return local(iso) === typed.slice(0, 16) ? iso : text;
}

/**
 * A season: for each event a line with its name, season and beginning, parted by bars, the lines of its matches, and an
 * empty line. `lineOf` tells where in the text a problem with an event stands: its message begins with the path.
 */
export function parseSeason(text: string) {
  const starts: number[] = [];
  const events: Record<string, any>[] = [];
  let isNew = true;
  for (const [place, line] of text.split('\n').entries()) {
    if (!line.trim()) isNew = true;
    else if (isNew) {
      const [name = '', season = '', startsAt = ''] = line.split('|').map((part) => part.trim());
      events.push({ name, season, startsAt: beginning(plain(startsAt)), matches: [] });
      starts.push(place + 1);
      isNew = false;
    } else events.at(-1)!.matches.push(parseMatch(line.trim()));
  }
  const lineOf = (event: number, message: string) => (starts[event - 1] ?? event) + Number(/matches[.\s]+(\d+)/.exec(message)?.[1] ?? -1) + 1;
  return { text: JSON.stringify({ events }), lineOf };
}
