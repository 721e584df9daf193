// Entries that may be very many: a page of them is read at a time, the next one when it is asked for.

import { type View, h } from '../base/dom';
import type { Page } from './area';

interface Connection<N> {
  nodes: N[];
  pageInfo: { hasNextPage: boolean; endCursor?: string | null };
}

/** What is read at once, as the only page. */
export const whole = <N,>(nodes: N[]): Connection<N> => ({ nodes, pageInfo: { hasNextPage: false } });

export class Pages<N> {
  nodes: N[] | null = null;
  private next: string | null = null;
  private isRefused = false;
  private opened = 0;

  /**
   * `id`-5 is the id of the sixth entry, which gets the focus if the page that begins with it was asked for; or `id` is
   * that of a select with all of them.
   */
  constructor(private page: Page, private id: string, private ask: (after: string | null) => Promise<Connection<N> | null | undefined>) {}

  get isWhole() {
    return this.nodes !== null && !this.next;
  }

  /**
   * Reads the first page, again if it was read before; whether it was answered. If it is opened again meanwhile, it is
   * that answer that counts.
   */
  async open() {
    const turn = ++this.opened;
    const found = await this.page.insist(() => this.ask(null));
    if (turn !== this.opened) return false;
    this.isRefused = !found;
    if (found) this.take([], found);
    return !this.isRefused;
  }

  private async more() {
    const { next, nodes } = this;
    const found = await this.page.insist(() => this.ask(next));
    if (!found || this.next !== next) return;
    this.take(this.nodes!, found);
    await this.page.focus(`#${this.id}-${nodes!.length}, select#${this.id}`);
  }

  private take(before: N[], { nodes, pageInfo }: Connection<N>) {
    this.nodes = [...before, ...nodes];
    this.next = pageInfo.hasNextPage ? (pageInfo.endCursor ?? null) : null;
    this.page.render();
  }

  /** In place of entries that are still to come. Where they were refused, the page's note says so. */
  waiting(): View | null {
    return this.isRefused ? null : <p>{this.page.t('loading')}</p>;
  }

  button(): View | null {
    return this.next ? <div class="row"><button type="button" onclick={() => this.more()}>{this.page.t('more')}</button></div> : null;
  }
}

/** The rows of entries, each made once as long as its entry is the same: then drawing thousands again costs little. */
export class Rows<N extends object> {
  private made = new WeakMap<N, { row: string; view: View }>();

  /** `row` is where the entry stands. */
  of(entry: N, row: string, make: () => View): View {
    const known = this.made.get(entry);
    if (known?.row === row) return known.view;
    const view = make();
    this.made.set(entry, { row, view });
    return view;
  }
}
