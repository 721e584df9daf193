// What the service does: requests and their cost by operation, what waits, and the latest jobs. For admins.

import { h } from '../base/dom';
import { ask } from '../service';
import { OPERATIONS, type OperationsData } from '../generated/admin';
import { type Area, type Page, time } from './area';

const HOURS = 24;

export class ServiceState implements Area {
  private data: OperationsData | null = null;

  constructor(private page: Page) {}

  async open() {
    const to = new Date();
    const from = new Date(to.getTime() - HOURS * 3_600_000);
    this.data = await this.page.insist(() => ask(OPERATIONS, { from: from.toISOString(), to: to.toISOString() }));
  }

  view() {
    const { page, data } = this;
    if (!data) return <section class="stack"><h2>{page.t('service')}</h2><p>{page.t('loading')}</p></section>;
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
