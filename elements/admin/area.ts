// One area of the pages: what it loads when it is opened, and what it shows.

import type { View } from '../base/dom';
import { type Part, pause } from '../base/part';
import { JOB, type JobData } from '../generated/admin';
import { Failed, ask } from '../service';

export interface Area {
  open(): Promise<unknown>;
  view(): View;
}

export type Page = Part<any>;

/** The value of a field of the form that a submit event comes from. */
export const field = (event: Event, name: string) => String(new FormData(event.currentTarget as HTMLFormElement).get(name) ?? '');

/** A name as it is read: how accents are stored, marks of its direction and how wide a blank is are not seen. */
const asRead = (name: string) => name.normalize().replace(/\p{Cf}/gu, '').replace(/\s+/g, ' ').trim();

/** Whether what was typed in the form's field for it is this name. */
export const isNamed = (event: Event, name: string) => asRead(field(event, 'name')) === asRead(name);

/** Of a field for files, when one is chosen: the same one, which was mended meanwhile, counts again. */
export const anew = ({ currentTarget }: any) => { currentTarget.value = ''; };

/** Not for the second click of a double one: another button may stand there by then. */
export const firstClick = (act: () => unknown) => ({ detail }: MouseEvent) => void (detail < 2 && act());

/** Copies what is shown there, or selects it where the page may not copy, as over plain http. */
export async function copy(page: Page, place: string) {
  const shown = page.find(place)!;
  try {
    await navigator.clipboard.writeText(shown.textContent!);
    page.say(page.t('copied'));
  } catch {
    getSelection()!.selectAllChildren(shown);
    page.say(page.t('selected'));
  }
}

/** A moment as it is read. */
export const time = (page: Page, iso: string) => page.date(iso, { dateStyle: 'medium', timeStyle: 'short' });

/** A moment as a field for local times has it, and back. */
export const local = (iso: string | null) => (iso ? new Date(Date.parse(iso) - new Date(iso).getTimezoneOffset() * 60_000).toISOString().slice(0, 16) : '');
export const moment = (value: string) => (value ? new Date(value).toISOString() : null);

/** What was asked for is hidden, as from visitors: the session may have ended. Its code is the text that is said. */
export class Hidden extends Failed {}

/** A job that did its work, once it has ended, and nothing of one that failed; what it has done is said meanwhile. */
export async function ended(page: Page, id: string): Promise<JobData['job']> {
  const read = async () => {
    const { job } = await ask(JOB, { id });
    if (!job) throw new Hidden('jobGone');
    return job;
  };
  for (;;) {
    const job = await page.insist(read);
    if (!job) return null;
    if (job.state !== 'RUNNING') {
      page.say(job.message ?? page.t(job.state));
      return job.state === 'DONE' ? job : null;
    }
    page.say(page.t('working', { n: job.done }));
    await pause(1);
  }
}
