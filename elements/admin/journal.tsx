// The journal: who did what, newest first.

import { h } from '../base/dom';
import { ask } from '../service';
import { JOURNAL, type JournalData } from '../generated/admin';
import type { Area, Page } from './area';
import { Pages } from './pages';

export class Journal implements Area {
  private shown: Pages<JournalData['journal']['nodes'][number]>;

  constructor(private page: Page) {
    this.shown = new Pages(page, 'occurrence', (after) => ask(JOURNAL, { after }).then((data) => data.journal));
  }

  open() {
    return this.shown.open();
  }

  view() {
    const { page } = this;
    return (
      <section class="stack">
        <h2>{page.t('journal')}</h2>
        {!this.shown.nodes ? this.shown.waiting() : !this.shown.nodes.length ? <p>{page.t('nothing')}</p> : (
          <ul class="stack">
            {this.shown.nodes.map(({ id, at, kind, source, actorUser, note, ground }, place) => (
              <li key={id} id={`occurrence-${place}`} tabindex="-1">
                <span class="soft">{page.date(at, { dateStyle: 'medium', timeStyle: 'short' })}</span> <code dir="ltr">{kind}</code>{' '}
                <span dir="auto">{actorUser?.name ?? page.t(source)}</span> {ground && page.t(ground)} <span dir="auto">{note}</span>
              </li>
            ))}
          </ul>
        )}
        {this.shown.button()}
      </section>
    );
  }
}
