// <ringside-admin>: the pages for members with a role. The address's fragment says which: #/overview, #/comments/held.

import { h } from '../base/dom';
import { Part, newKey, on } from '../base/part';
import * as service from '../service';
import { ACTIVITY, ADMIN_VIEWER, type ActivityData, type AdminViewerData, HELD_COMMENTS, HISTORY, type HeldCommentsData, type HistoryData, LATEST_COMMENTS, MODERATE_COMMENTS } from '../generated/admin';
import type { Area } from './area';
import { Imports } from './imports';
import { Journal } from './journal';
import { Members } from './members';
import { ServiceState } from './service-state';
import css from './admin.css?inline';
import english from './texts/en.json';

type Comment = HeldCommentsData['moderationQueue']['nodes'][number];
type Status = Comment['status'];

const GROUNDS = ['SPAM', 'ABUSE', 'OFF_TOPIC', 'ILLEGAL', 'PERSONAL_DATA', 'FRAUD', 'OTHER'];
const MEASURES = ['votes', 'comments', 'predictions', 'quizzes', 'newMembers'] as const;
const DAYS = 30;
const dayBefore = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);

class Admin extends Part<AdminViewerData> {
  private viewer: AdminViewerData['viewer'] | undefined;
  private days: ActivityData['activity'] | null = null;
  private list: Comment[] | null = null;
  private current = 0;
  private chosen = new Set<string>();
  private history: HistoryData['user'] = null;
  private last: Comment[] = [];
  private others: Record<string, Area> = {};

  constructor(host: HTMLElement, translated: any) {
    super(host, service as any, translated, 'admin', english, css);
    this.until(on(window, 'hashchange', () => void this.open()));
    this.until(on(window, 'keydown', (event) => this.press(event)));
  }

  protected arrived({ viewer }: AdminViewerData) {
    this.viewer = viewer;
    this.others = {
      ...(this.has('editor') && { imports: new Imports(this) }),
      ...(this.has('moderator') && { members: new Members(this, this.has('admin')), journal: new Journal(this) }),
      ...(this.has('admin') && { service: new ServiceState(this) }),
    };
    document.title = this.t('title');
    void this.open();
  }

  private has = (role: string) => Boolean(this.viewer?.roles?.some((one) => one === role || one === 'admin'));
  private get areas() {
    return [this.has('editor') && 'overview', this.has('moderator') && 'comments/held', this.has('moderator') && 'comments/latest', ...Object.keys(this.others)].filter(Boolean) as string[];
  }
  private get place() {
    const asked = location.hash.slice(2);
    return this.areas.includes(asked) ? asked : this.areas[0];
  }

  private async open() {
    const { place } = this;
    this.list = this.days = this.history = null;
    this.render();
    if (place === 'overview') {
      const data = await this.insist(() => service.ask(ACTIVITY, { from: dayBefore(DAYS - 1), to: dayBefore(0) }));
      if (data && place === this.place) this.days = data.activity;
    } else if (place && this.others[place]) {
      await this.others[place].open();
    } else if (place) {
      const list = await this.insist(() => (place === 'comments/held' ? service.ask(HELD_COMMENTS, {}).then((data) => data.moderationQueue.nodes) : service.ask(LATEST_COMMENTS, {}).then((data) => data.latestComments.nodes)));
      if (list && place === this.place) await this.show(list);
    }
    this.render();
  }

  // ── comments ──

  private async show(list: Comment[]) {
    this.list = list;
    this.chosen.clear();
    await this.go(Math.min(this.current, list.length - 1));
  }

  private async go(place: number) {
    this.current = Math.max(0, Math.min(place, (this.list?.length ?? 0) - 1));
    const author = this.list?.[this.current]?.author.id;
    this.render();
    if (!author || author === this.history?.id) return;
    const data = await this.insist(() => service.ask(HISTORY, { user: author }));
    if (author === this.list?.[this.current]?.author.id) this.history = data?.user ?? null;
    this.render();
  }

  private choose(id: string) {
    if (!this.chosen.delete(id)) this.chosen.add(id);
    this.render();
  }

  private async decide(status: Status, ground?: string, comments = this.targets()) {
    const input = { comments: comments.map(({ id }) => id), status, ground, idempotencyKey: newKey() };
    const answer = comments.length ? await this.mutate(MODERATE_COMMENTS, { input }) : null;
    if (!answer) return null;
    if (answer.code) {
      this.say(this.refusal(answer));
      return null;
    }
    const refused = answer.refused.map(({ message }: { message: string }) => message).join(' ');
    this.say(`${this.t('decided', { n: answer.comments.length })} ${refused}`);
    return answer.comments as Comment[];
  }

  private targets = () => (this.list ?? []).filter(({ id }, place) => (this.chosen.size ? this.chosen.has(id) : place === this.current));

  private async settle(status: Status, ground?: string) {
    const before = this.targets();
    const decided = await this.decide(status, ground, before);
    if (!decided) return;
    const ids = new Set(decided.map(({ id }) => id));
    this.last = before.filter(({ id }) => ids.has(id));
    const left = this.place === 'comments/held' ? this.list!.filter(({ id }) => !ids.has(id)) : this.list!.map((one) => decided.find(({ id }) => id === one.id) ?? one);
    await this.show(left);
  }

  /** Gives the comments of the last decision the status that each had. */
  private async undo() {
    for (const status of new Set(this.last.map((one) => one.status))) {
      if (!(await this.decide(status, undefined, this.last.filter((one) => one.status === status)))) return;
    }
    this.last = [];
    await this.open();
    this.say(this.t('undone'));
  }

  private press(event: KeyboardEvent) {
    const typing = (event.composedPath()[0] as Element).matches?.('input:not([type=checkbox]), textarea, select');
    if (!this.list || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const ground = GROUNDS[+event.key - 1];
    const here = this.list[this.current];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) void this.go(this.current + step);
    else if (event.key === 'x' && here) this.choose(here.id);
    else if (event.key === 'a') void this.settle('PUBLISHED');
    else if (event.key === 'u') void this.undo();
    else if (ground) void this.settle('REJECTED', ground);
    else return;
    event.preventDefault();
  }

  // ── views ──

  protected view() {
    return (
      <div class="stack">
        <header class="row between">
          <h1>{this.t('title')}</h1>
          <nav class="row" aria-label={this.t('title')}>
            {this.areas.map((area) => <a href={`#/${area}`} aria-current={area === this.place && 'page'}>{this.t(area.split('/').pop()!)}</a>)}
          </nav>
        </header>
        <main class="stack">{this.note()}{this.inside()}</main>
      </div>
    );
  }

  private inside() {
    if (this.viewer === undefined) return <p>{this.t('loading')}</p>;
    if (!this.areas.length) {
      return <div class="stack"><p>{this.t('onlyRoles')}</p>{this.viewer ? <p>{this.t('noRole', { name: this.viewer.name })}</p> : this.signInButton()}</div>;
    }
    const other = this.others[this.place!];
    return other ? other.view() : this.place === 'overview' ? this.overview() : this.comments();
  }

  private overview() {
    const days = this.days ?? [];
    return (
      <div class="stack">
        <h2>{this.t('overview')}</h2>
        {MEASURES.map((measure) => {
          const most = Math.max(1, ...days.map((day) => day[measure]));
          const label = this.t('total', { name: this.t(measure), n: days.reduce((sum, day) => sum + day[measure], 0) });
          return (
            <figure>
              <figcaption>{label}</figcaption>
              <svg viewBox={`0 0 ${DAYS} 10`} preserveAspectRatio="none" role="img" aria-label={label}>
                {days.map((day, place) => <rect x={place} width=".8" y={10 - (10 * day[measure]) / most} height={(10 * day[measure]) / most} />)}
              </svg>
            </figure>
          );
        })}
      </div>
    );
  }

  private comments() {
    const list = this.list;
    return (
      <div class="two">
        <section class="stack">
          <h2>{this.t(this.place!.split('/').pop()!)}</h2>
          <p class="soft">{this.t('keys')}</p>
          <div class="row">
            <button type="button" class="primary" onclick={() => this.settle('PUBLISHED')}>{this.t('publish')}</button>
            <span>{this.t('reject')}</span>
            {GROUNDS.map((ground, place) => <button type="button" onclick={() => this.settle('REJECTED', ground)}>{`${place + 1} ${this.t(ground)}`}</button>)}
            <button type="button" aria-disabled={!this.last.length && 'true'} onclick={() => this.undo()}>{this.t('undo')}</button>
            <button type="button" onclick={() => { this.chosen = new Set(list?.map(({ id }) => id)); this.render(); }}>{this.t('chooseAll')}</button>
          </div>
          {!list ? <p>{this.t('loading')}</p> : !list.length ? <p>{this.t('nothing')}</p> : list.map((comment, place) => this.comment(comment, place))}
        </section>
        <section class="stack">
          {this.history && <h2>{this.t('history', { name: this.history.name })}</h2>}
          {this.history?.comments.nodes.map(({ id, body, createdAt, status }) => (
            <div key={id}><p class="soft">{this.date(createdAt)} · {this.t(status)}</p><p class="body" dir="auto">{body}</p></div>
          ))}
        </section>
      </div>
    );
  }

  private comment({ id, author, product, createdAt, body, title, status, heldBy, reportReasons }: Comment, place: number) {
    return (
      <article key={id} class={place === this.current ? 'current' : ''} aria-current={place === this.current && 'true'} onclick={() => this.go(place)}>
        <label class="pick"><input type="checkbox" checked={this.chosen.has(id)} onchange={() => this.choose(id)} />{this.t('choose')}</label>
        <p><strong dir="auto">{author.name}</strong> {author.isGuest && this.t('guest')} <span class="soft">{product} · {this.date(createdAt)} · {this.t(status)}</span></p>
        {heldBy && <p class="error">{this.t('heldBy', { rule: heldBy })}</p>}
        {reportReasons?.length ? <p class="error">{this.t('reported', { reasons: reportReasons.join(', ') })}</p> : null}
        {title && <p dir="auto"><strong>{title}</strong></p>}
        <p class="body" dir="auto">{body}</p>
      </article>
    );
  }
}

const TEXTS: Record<string, () => Promise<any[]>> = {
  de: () => Promise.all([import('./texts/de.json'), import('../texts/de.json')]),
  es: () => Promise.all([import('./texts/es.json'), import('../texts/es.json')]),
  ar: () => Promise.all([import('./texts/ar.json'), import('../texts/ar.json')]),
};

customElements.define(
  'ringside-admin',
  class extends HTMLElement {
    async connectedCallback() {
      this.attachShadow({ mode: 'open' });
      const language = document.documentElement.lang;
      const first = service.ask(ADMIN_VIEWER, {});
      first.catch(() => {}); // the part looks at it
      const loaded = await TEXTS[language]?.();
      const translated = loaded && { language, admin: loaded[0].default, common: loaded[1].default.common };
      void new Admin(this, translated).start(first, [ADMIN_VIEWER, {}]);
    }
  },
);
