// The journal: who did what, newest first.

import { h } from '../base/dom';
import { ask } from '../service';
import { JOURNAL, type JournalData } from '../generated/admin';
import type { Area, Page } from './area';

type Occurrence = JournalData['journal']['nodes'][number];

export class Journal implements Area {
  private shown: Occurrence[] | null = null;
  private next: string | null = null;

  constructor(private page: Page) {}

  async open() {
    this.shown = null;
    await this.more(null);
  }

  private async more(after: string | null) {
    const data = await this.page.insist(() => ask(JOURNAL, { after }));
    if (!data) return;
    const { nodes, pageInfo } = data.journal;
    this.shown = [...(this.shown ?? []), ...nodes];
    this.next = pageInfo.hasNextPage ? (pageInfo.endCursor ?? null) : null;
    this.page.render();
  }

  view() {
    const { page } = this;
    return (
      <section class="stack">
        <h2>{page.t('journal')}</h2>
        {!this.shown ? <p>{page.t('loading')}</p> : (
          <ul class="stack">
            {this.shown.map(({ id, at, kind, source, actorUser, note, ground }) => (
              <li key={id}>
                <span class="soft">{page.date(at, { dateStyle: 'medium', timeStyle: 'short' })}</span> <code dir="ltr">{kind}</code>{' '}
                <span dir="auto">{actorUser?.name ?? page.t(source)}</span> {ground && page.t(ground)} <span dir="auto">{note}</span>
              </li>
            ))}
          </ul>
        )}
        {this.next && <button type="button" onclick={() => this.more(this.next)}>{page.t('more')}</button>}
      </section>
    );
  }
}
