// Webhooks: who is told what happens, what became of each message, and telling it again. For admins.

import { h } from '../base/dom';
import { newKey } from '../base/part';
import {
  ADD_WEBHOOK, DELIVERIES, type DeliveriesData, REDELIVER, REMOVE_WEBHOOK, ROTATE_WEBHOOK_SECRET, WEBHOOKS, type WebhooksData,
} from '../generated/admin';
import { ask } from '../service';
import { type Area, Hidden, type Page, copy, ended, firstClick, moment, time } from './area';
import { Draft } from './draft';
import { Pages, whole } from './pages';

type Webhook = WebhooksData['webhooks']['nodes'][number];
type Deliveries = NonNullable<NonNullable<DeliveriesData['node']>['deliveries']>;
type Delivery = Deliveries['nodes'][number];

export class Webhooks implements Area {
  private webhooks: Pages<Webhook>;
  private chosen: Webhook | null = null;
  private deliveries!: Pages<Delivery>;
  private secret: string | null = null;
  private fresh: Draft<{ url: string; kinds: string }>;
  private since: Draft<{ since: string }>;

  constructor(private page: Page) {
    this.webhooks = new Pages(page, 'webhooks', async () => whole((await ask(WEBHOOKS, {})).webhooks.nodes.filter(({ active }) => active)));
    this.fresh = new Draft(page, 'webhook', { url: '', kinds: '' });
    this.since = new Draft(page, 'redeliver', { since: '' });
  }

  open() {
    return this.webhooks.open();
  }

  private async add(event: Event) {
    event.preventDefault();
    const { url, kinds } = this.fresh.values;
    const answer = await this.fresh.send(ADD_WEBHOOK, { url: url.trim(), kinds: kinds.split(/[\s,]+/).filter(Boolean) });
    if (!answer) return;
    this.fresh.clear();
    await this.open();
    await this.choose(answer.webhook);
    await this.showSecret(answer.webhook, answer.secret);
  }

  /** It is shown this once, so the webhook is chosen again if another one was meanwhile. */
  private async showSecret(webhook: Webhook, secret: string) {
    while (this.chosen && this.chosen.id !== webhook.id) await this.choose(webhook);
    this.secret = secret;
    this.page.say(this.page.t('secretOnce'));
    await this.page.focus('#secret');
  }

  private async choose(webhook: Webhook) {
    [this.chosen, this.secret] = [webhook, null];
    this.deliveries = new Pages(this.page, 'delivery', (after) => this.readDeliveries(webhook, after));
    await this.deliveries.open();
    if (this.chosen === webhook) await this.page.focus('#chosen-webhook');
  }

  /** Null if another admin has removed it. From whom they are hidden the list is, too; else it still has this one. */
  private async readDeliveries(webhook: Webhook, after: string | null) {
    const { node } = await ask(DELIVERIES, { webhook: webhook.id, after });
    if (node?.deliveries) return node.deliveries;
    const { webhooks } = await ask(WEBHOOKS, {});
    if (webhooks.nodes.some(({ id, active }) => active && id === webhook.id)) throw new Hidden('roleGone');
    await this.leave(webhook);
    return null;
  }

  private async act(document: any, { id }: Webhook): Promise<any> {
    const answer = await this.page.mutate(document, { input: { webhook: id, idempotencyKey: newKey() } });
    if (answer?.code) this.page.say(this.page.refusal(answer));
    return answer?.code ? null : answer;
  }

  private async rotate() {
    const webhook = this.chosen!;
    const answer = await this.act(ROTATE_WEBHOOK_SECRET, webhook);
    if (answer) await this.showSecret(webhook, answer.secret);
  }

  private async remove() {
    const webhook = this.chosen!;
    if (await this.act(REMOVE_WEBHOOK, webhook)) await this.leave(webhook);
  }

  /** Nothing is shown of one that was removed. */
  private async leave(webhook: Webhook) {
    this.page.say(this.page.t('webhookRemoved', { url: webhook.url }));
    const isShown = this.chosen?.id === webhook.id;
    if (isShown) this.chosen = null;
    await this.open();
    if (isShown) await this.page.focus('#webhooks');
    else this.page.render();
  }

  private async redeliver(event: Event) {
    event.preventDefault();
    const answer = await this.since.send(REDELIVER, { webhook: this.chosen!.id, since: moment(this.since.values.since) ?? '' });
    if (!answer) return;
    await ended(this.page, answer.job.id);
    await this.deliveries.open();
  }

  // ── views ──

  view() {
    const { page } = this;
    return (
      <div class="stack">
        <h2 id="webhooks" tabindex="-1">{page.t('webhooks')}</h2>
        <p class="soft">{page.t('webhooksWhat')}</p>
        {!this.webhooks.nodes ? this.webhooks.waiting() : (
          <ul class="stack">
            {this.webhooks.nodes.map((webhook) => (
              <li key={webhook.id}><button type="button" aria-pressed={String(webhook.id === this.chosen?.id)} onclick={() => this.choose(webhook)}><bdi dir="ltr">{webhook.url}</bdi></button></li>
            ))}
          </ul>
        )}
        {this.chosen && this.detail(this.chosen)}
        <form class="stack" onsubmit={(event: Event) => this.add(event)}>
          <h3>{page.t('newWebhook')}</h3>
          {this.fresh.field('url', page.t('webhookUrl'), { type: 'url', required: true, dir: 'ltr', placeholder: 'https://example.com/ringside' })}
          {this.fresh.field('kinds', page.t('webhookKinds'), { dir: 'ltr', placeholder: 'comment.posted, member.suspended', hint: page.t('webhookKindsHint') })}
          <div class="row"><button type="submit" class="primary">{page.t('create')}</button></div>
        </form>
      </div>
    );
  }

  private detail(webhook: Webhook) {
    const { page } = this;
    return (
      <section class="stack" key={webhook.id}>
        <h3 id="chosen-webhook" tabindex="-1"><bdi dir="ltr">{webhook.url}</bdi></h3>
        <p class="soft">{page.t('since', { date: page.date(webhook.createdAt) })} {webhook.kinds.length ? <code dir="ltr">{webhook.kinds.join(', ')}</code> : page.t('allKinds')}</p>
        {this.secret && (
          <div class="stack">
            <p>{page.t('secretOnce')}</p>
            <pre id="secret" tabindex="0" dir="ltr" aria-label={page.t('secret')}>{this.secret}</pre>
            <div class="row"><button type="button" onclick={() => copy(page, '#secret')}>{page.t('copySecret')}</button></div>
          </div>
        )}
        <div class="row">
          <button type="button" onclick={firstClick(() => this.rotate())}>{page.t('newSecret')}</button>
          <button type="button" class="plain" onclick={() => this.remove()}>{page.t('remove')}<span class="hidden"> {webhook.url}</span></button>
        </div>
        <form class="row end" onsubmit={(event: Event) => this.redeliver(event)}>
          {this.since.field('since', page.t('redeliverSince'), { type: 'datetime-local', required: true })}
          <button type="submit">{page.t('redeliver')}</button>
        </form>
        <h4>{page.t('deliveries')}</h4>
        {!this.deliveries.nodes ? this.deliveries.waiting() : !this.deliveries.nodes.length ? <p>{page.t('noDeliveries')}</p> : (
          <ul class="stack">{this.deliveries.nodes.map((delivery, place) => this.delivery(delivery, place))}</ul>
        )}
        {this.deliveries.button()}
        <div class="row"><button type="button" onclick={() => this.deliveries.open()}>{page.t('lookAgain')}</button></div>
      </section>
    );
  }

  private delivery({ id, state, attempts, lastStatus, lastError, nextAt, occurrence }: Delivery, place: number) {
    const { page } = this;
    return (
      <li key={id} id={`delivery-${place}`} tabindex="-1">
        {occurrence && <code dir="ltr">{occurrence.kind}</code>} <strong>{page.t(`delivery${state}`)}</strong> · {page.t('attempts', { n: attempts })}{lastStatus !== null && ` · ${lastStatus}`}{' '}
        <span class="soft">{occurrence && time(page, occurrence.at)} {nextAt && page.t('nextAt', { when: time(page, nextAt) })}</span>
        {lastError && <p class="error" dir="auto">{lastError}</p>}
      </li>
    );
  }
}
