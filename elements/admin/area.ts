// One area of the pages: what it loads when it is opened, and what it shows.

import type { View } from '../base/dom';
import type { Part } from '../base/part';

export interface Area {
  open(): Promise<void>;
  view(): View;
}

export type Page = Part<any>;

/** The value of a field of the form that a submit event comes from. */
export const field = (event: Event, name: string) => String(new FormData(event.currentTarget as HTMLFormElement).get(name) ?? '');
