// What the service does: requests and their cost by operation, what waits, and the latest jobs. For admins.

import { h } from '../base/dom';
import { ask } from '../service';
import { OPERATIONS, type OperationsData } from '../generated/admin';
import { type Area, type Page, time } from './area';
import { Pages, whole } from './pages';

const HOURS = 24;

export class ServiceState implements Area {
  private read: Pages<OperationsData>;

  constructor(private page: Page) {
    this.read = new Pages(page, 'state', async () => {
      const to = new Date();
      const from = new Date(to.getTime() - HOURS * 3_600_000);
      return whole([await ask(OPERATIONS, { from: from.toISOString(), to: to.toISOString() })]);
    });
  }

  open() {
    return this.read.open();
  }

  view() {
    const { page, read } = this;
    const [data] = read.nodes ?? [];
    if (!data) return <section class="stack"><h2>{page.t('service')}</h2>{read.waiting()}</section>;
    return (
      <section class="stack">
        <h2>{page.t('service')}</h2>
        <p>{page.t('lag', { votes: page.duration(data.lag.settlingSeconds), jobs: page.duration(data.lag.oldestJobSeconds) })}</p>
        <div class="scroll" tabindex="0" role="region" aria-label={page.t('operations')}>
          <table>
            <caption>{page.t('operations')}</caption>
            <thead><tr>{['operation', 'requests', 'refusals', 'units', 'dollars'].map((name) => <th scope="col">{page.t(name)}</th>)}</tr></thead>
            <tbody>
              {data.operations.map((one) => (
                <tr key={one.name}>
                  <th scope="row">{one.name}</th><td>{page.number(one.requests)}</td><td>{page.number(one.refusals)}</td>
                  <td>{page.number(one.units, { maximumFractionDigits: 0 })}</td>
                  <td>{page.number(one.dollars, { style: 'currency', currency: 'USD', maximumFractionDigits: 4 })}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        <h3>{page.t('jobs')}</h3>
        {data.jobs.nodes.length ? (
          <ul class="stack">
            {data.jobs.nodes.map(({ id, kind, state, done, total, startedAt, message }) => (
              <li key={id}>
                <code dir="ltr">{kind}</code> {page.t(state)} · {page.number(done)}{total ? ` / ${page.number(total)}` : ''} ·{' '}
                <span class="soft">{time(page, startedAt)}</span> <span dir="auto">{message}</span>
              </li>
            ))}
          </ul>
        ) : <p>{page.t('nothing')}</p>}
      </section>
    );
  }
}
