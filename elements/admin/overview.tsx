// What happened on each of the last days, as plots and as a table.

import { h } from '../base/dom';
import { ACTIVITY, type ActivityData } from '../generated/admin';
import { ask } from '../service';
import type { Area, Page } from './area';
import { Pages, whole } from './pages';

type Day = ActivityData['activity'][number];

const MEASURES = ['votes', 'comments', 'predictions', 'quizzes', 'newMembers'] as const;
const DAYS = 30;
const dayBefore = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);

export class Overview implements Area {
  private days: Pages<Day>;

  constructor(private page: Page) {
    this.days = new Pages(page, 'day', async () => whole((await ask(ACTIVITY, { from: dayBefore(DAYS - 1), to: dayBefore(0) })).activity));
  }

  open() {
    return this.days.open();
  }

  view() {
    const { page } = this;
    const days = this.days.nodes;
    return (
      <div class="stack">
        <h2>{page.t('overview')}</h2>
        {!days ? this.days.waiting() : MEASURES.map((measure) => {
          const most = Math.max(1, ...days.map((day) => day[measure]));
          const label = page.t('total', { name: page.t(measure), n: days.reduce((sum, day) => sum + day[measure], 0) });
          return (
            <figure>
              <figcaption>{label}</figcaption>
              <svg viewBox={`0 0 ${DAYS} 10`} preserveAspectRatio="none" role="img" aria-label={label}>
                {days.map((day, place) => <rect x={place} width=".8" y={10 - (10 * day[measure]) / most} height={(10 * day[measure]) / most} />)}
              </svg>
            </figure>
          );
        })}
        {days && this.byDay(days)}
      </div>
    );
  }

  /** The figures that the plots show, for who cannot see these or wants to know one. */
  private byDay(days: Day[]) {
    const { page } = this;
    return (
      <details>
        <summary>{page.t('byDay')}</summary>
        <div class="scroll" tabindex="0" role="region" aria-label={page.t('byDay')}>
          <table>
            <thead><tr>{['day', ...MEASURES].map((name) => <th scope="col">{page.t(name)}</th>)}</tr></thead>
            <tbody>
              {days.map((day) => (
                <tr><th scope="row">{page.date(day.day, { dateStyle: 'medium', timeZone: 'UTC' })}</th>{MEASURES.map((measure) => <td>{page.number(day[measure])}</td>)}</tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    );
  }
}
