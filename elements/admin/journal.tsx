// The journal: who did what, newest first.

import { h } from '../base/dom';
import { ask } from '../service';
import { JOURNAL, type JournalData } from '../generated/admin';
import { type Area, type Page, time } from './area';
import { Pages } from './pages';

type Occurrence = JournalData['journal']['nodes'][number];

/** Of a comment the beginning is shown. */
const LETTERS = 80;

/** What somebody did something to; nothing of what is gone, or of themselves. */
function objectOf({ objectNode: it, actorUser }: Occurrence) {
  if (actorUser && it?.id === actorUser.id) return '';
  return it?.name ?? it?.title ?? it?.term ?? it?.url ?? [...(it?.body ?? '')].slice(0, LETTERS).join('');
}

export class Journal implements Area {
  private shown: Pages<Occurrence>;

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
            {this.shown.nodes.map((one, place) => this.occurrence(one, place))}
          </ul>
        )}
        {this.shown.button()}
      </section>
    );
  }

  private occurrence(one: Occurrence, place: number) {
    const { page } = this;
    const { id, at, kind, source, actorUser, note, ground } = one;
    const object = objectOf(one);
    const guest = ` ${page.t('guest')}`;
    return (
      <li key={id} id={`occurrence-${place}`} tabindex="-1">
        <span class="soft">{time(page, at)}</span> <code dir="ltr">{kind}</code>{' '}
        <bdi>{object}</bdi>{object && one.objectNode?.isGuest && guest} · <bdi>{actorUser?.name ?? page.t(source)}</bdi>{actorUser?.isGuest && guest}{actorUser && source !== 'MEMBER' && ` · ${page.t(source)}`} {ground && page.t(ground)} <span dir="auto">{note}</span>
      </li>
    );
  }
}
