// <ringside-admin>: the pages for members with a role. The address's fragment says which: #/overview, #/comments/held.

import { h } from '../base/dom';
import { Part, newKey, on, pause } from '../base/part';
import * as service from '../service';
import type { Doc, Refused } from '../service';
import { ADMIN_VIEWER, ANSWERED_COMMENT, ANSWER_FOR_SITE, type AdminViewerData, HELD_COMMENTS, HISTORY, type HeldCommentsData, type HistoryData, LATEST_COMMENTS, MODERATE_COMMENTS } from '../generated/admin';
import { SIGN_OUT } from '../generated/sign-in';
import { type Area, Hidden, copy, firstClick } from './area';
import { Boards } from './boards';
import { Draft } from './draft';
import { Events } from './events';
import { Imports } from './imports';
import { Journal } from './journal';
import { Members } from './members';
import { Overview } from './overview';
import { Pages } from './pages';
import { Rules } from './rules';
import { ServiceState } from './service-state';
import { Webhooks } from './webhooks';
import { Words } from './words';
import css from './admin.css?inline';
import english from './texts/en.json';

type Queue = HeldCommentsData['held'];
type Comment = Queue['edges'][number]['node'];
type Status = Comment['status'];

const GROUNDS = ['SPAM', 'ABUSE', 'OFF_TOPIC', 'ILLEGAL', 'PERSONAL_DATA', 'FRAUD', 'OTHER'];
const AT_ONCE = 100;
const MOST_COUNTED = 1000;
/** The oldest of several queues, as many as one decision may be about. `after` is up to where each was read, in JSON. */
const oldest = (queues: Queue[], after: (string | null)[]) => {
  const waiting = queues.flatMap(({ edges }) => edges);
  waiting.sort(({ node: one }, { node: other }) => one.createdAt.localeCompare(other.createdAt));
  const read = new Set(waiting.slice(0, AT_ONCE));
  const cursors = queues.map(({ edges, pageInfo }, place) => {
    const last = edges.filter((edge) => read.has(edge)).at(-1);
    return (last === edges.at(-1) ? pageInfo.endCursor : last?.cursor) ?? after[place] ?? null;
  });
  const hasNextPage = waiting.length > AT_ONCE || queues.some(({ pageInfo }) => pageInfo.hasNextPage);
  return { nodes: [...read].map(({ node }) => node), pageInfo: { hasNextPage, endCursor: JSON.stringify(cursors) } };
};
/** A key, by its place on a keyboard that is set to another script. */
const keyOf = ({ key, code }: KeyboardEvent) => (/^[ -~]+$/.test(key) ? key : code.replace(/^(Key|Digit)/, '').toLowerCase());

class Admin extends Part<AdminViewerData> {
  protected override ahead = 0; // the documents ask for no clock
  protected declare viewer: AdminViewerData['viewer'] | undefined;
  private shown: Pages<Comment> | null = null;
  /** The id of the comment that the keys are about. If it is not among those that are shown, they are about none. */
  private current: string | null = null;
  private chosen = new Set<string>();
  /** For the authors of what is rejected next. */
  private remark = new Draft(this, 'decision', { note: '' });
  /** The site's answer that is being written, to the comment of this id. */
  private answering: { id: string; name: string; draft: Draft<{ body: string }> } | null = null;
  /** How many wait, up to one more than are counted. */
  private queued = 0;
  private history: HistoryData['user'] = null;
  /** The comments of the last decision, with the status and the reports that each had. */
  private last: Comment[] = [];
  /** Whether some were refused: they have been changed since they were shown, or are gone. */
  private isStale = false;
  private deciding: Promise<boolean> | null = null;
  private sent: { document: string; variables: object } | null = null;
  private documents: Record<string, string> | null = null;
  private waiting: ((isBack: boolean) => void)[] = [];
  private others: Record<string, Area> = {};
  /** The areas of each role: what was typed there stays for whoever may do the same. */
  private made: Record<string, Record<string, Area>> = {};

  constructor(host: HTMLElement, translated: any) {
    super(host, service as any, translated, 'admin', english, css);
    this.until(on(window, 'hashchange', () => this.enter()));
    this.until(on(window, 'keydown', (event) => this.press(event)));
    this.until(on(window, 'pointerup', () => setTimeout(() => this.goToPressed())));
    this.until(on(window, 'focus', () => void this.lookForSession()));
  }

  // ── the session ──

  private async signOut() {
    await super.mutate(SIGN_OUT, {});
    service.session.use(null);
    location.reload();
  }

  /** The answer; where the session has ended, the one after signing in again. */
  override insist<T>(send: () => Promise<T>): Promise<T | null> {
    return super.insist(() => this.signedIn(send));
  }

  /** What is hidden is asked for after one sign-in: it may be hidden from whoever that is, too. */
  private async signedIn<T>(send: () => Promise<T>): Promise<T> {
    for (let isAgain = false; ; isAgain = true) {
      try {
        return await send();
      } catch (failed: any) {
        const isEnded = failed instanceof Hidden ? !isAgain : ['UNAUTHENTICATED', 'NOT_SIGNED_IN'].includes(failed.code);
        if (!this.viewer || !isEnded || !(await this.signInAgain())) throw failed;
      }
    }
  }

  /** What is refused for the role alone names no field. Roles may be taken away while the page is open. */
  override refusal(refused: Refused) {
    if (refused.code === 'LOCKED') return refused.message; // the text of this name is an event's state
    return refused.code === 'NOT_ALLOWED' && !refused.path?.length ? this.t('roleGone') : super.refusal(refused);
  }

  /**
   * What matters much asks for a sign-in of the last minutes, which the service then refuses as not signed in. What is
   * sent again after one may be somebody else's: they see what they do.
   */
  override async mutate<T>(document: Doc<T, any>, variables: object): Promise<any> {
    this.sent = { document, variables };
    for (;;) {
      const found = await this.insist(() => service.ask(document, variables));
      const answer: any = found && Object.values(found)[0];
      if (answer?.code !== 'NOT_SIGNED_IN' || !(await this.signInAgain())) return answer;
    }
  }

  /** Asks for a sign-in in another tab, so that nothing is lost that was typed here. Whether there was one. */
  private signInAgain() {
    const dialog = this.find<HTMLDialogElement>('#ended')!;
    if (!dialog.open) dialog.showModal();
    return new Promise<boolean>((answer) => this.waiting.push(answer));
  }

  private async lookForSession() {
    if ((await this.lookForViewer()) && this.waiting.length) this.goOn(true);
  }

  /** In another tab. Where they are signed out, the dialog asks for a sign-in once one is needed. */
  protected override async signedInOrOut() {
    await this.lookForViewer();
  }

  /**
   * Whether anybody is signed in, who may be somebody else by now, or have further roles. Of a role that was taken away
   * the area stays, with what is typed there.
   */
  private async lookForViewer() {
    const { since } = this;
    const data = await service.ask(ADMIN_VIEWER, {}).catch(() => null);
    const viewer = data?.viewer;
    const { viewer: before } = this;
    const isNew = viewer && (viewer.id !== before?.id || viewer.roles?.some((role) => !before?.roles?.includes(role)));
    if (isNew && since === this.since) {
      this.turn++; // the answer to an earlier question would show who they were
      this.arrived(data);
    }
    return Boolean(viewer);
  }

  private goOn(isBack: boolean) {
    this.find<HTMLDialogElement>('#ended')!.close();
    this.waiting.splice(0).forEach((answer) => answer(isBack));
  }

  private sessionDialog() {
    return (
      <dialog id="ended" aria-labelledby="ended-title" oncancel={() => this.goOn(false)}>
        <div class="stack">
          <h2 id="ended-title">{this.t('signInAgain')}</h2>
          <p>{this.t('signInAgainWhy')}</p>
          <div class="row">
            <a class="button primary" href="/sign-in?again=1&returnTo=%2Fadmin" target="_blank" rel="opener">{this.t('signIn')}</a>
            <button type="button" onclick={() => this.lookForSession()}>{this.t('goOn')}</button>
            <button type="button" class="plain" onclick={() => this.goOn(false)}>{this.t('cancel')}</button>
          </div>
        </div>
      </dialog>
    );
  }

  /** A demo on one's own machine offers its members with a role. */
  private demoButtons() {
    const members: { name: string; token: string }[] = JSON.parse(this.host.dataset.viewers || '[]');
    const signIn = (token: string) => {
      service.session.use({ token, expiresAt: '' });
      location.reload();
    };
    return members.map(({ name, token }) => <button type="button" onclick={() => signIn(token)}>{this.t('signInAs', { name })}</button>);
  }

  // ── what was sent ──

  /** The last mutation, as it can be pasted into the explorer. */
  private sentView() {
    if (!this.sent) return null;
    const text = this.documents?.[this.sent.document.slice(1)];
    // Without its key: with it the service would repeat its answer, and refuse variables that were changed.
    const withoutKey = (name: string, value: unknown) => (name === 'idempotencyKey' ? undefined : value);
    const variables = text ? JSON.stringify(this.sent.variables, withoutKey, 2) : '';
    return (
      <details ontoggle={(event: any) => event.currentTarget.open && this.showSent()}>
        <summary>{this.t('showDocument')}</summary>
        {text && (
          <div class="stack">
            <p class="soft">{this.t('pasteIt')} <a href="/graphql" target="_blank" rel="noreferrer">{this.t('explorer')}</a></p>
            <pre id="document" tabindex="0" aria-label={this.t('document')}>{text}</pre>
            <div class="row"><button type="button" onclick={() => copy(this, '#document')}>{this.t('copyDocument')}</button></div>
            <pre id="variables" tabindex="0" aria-label={this.t('variables')}>{variables}</pre>
            <div class="row"><button type="button" onclick={() => copy(this, '#variables')}>{this.t('copyVariables')}</button></div>
          </div>
        )}
      </details>
    );
  }

  private async showSent() {
    const loaded = await import('documents:admin').catch(() => null); // the service may be of a later release
    if (!loaded) return this.say(this.t('OUT_OF_DATE'));
    this.documents = loaded.default;
    this.render();
  }

  protected arrived({ viewer }: AdminViewerData) {
    if (viewer?.id !== this.viewer?.id) this.forgetReply();
    this.viewer = viewer;
    const isAdmin = this.has('admin');
    this.others = {
      ...(this.has('editor') && (this.made.editor ??= this.editing())),
      ...(this.has('moderator') && (this.made[`moderator ${isAdmin}`] ??= { rules: new Rules(this, isAdmin), members: new Members(this, isAdmin), journal: new Journal(this) })),
      ...(isAdmin && (this.made.admin ??= { webhooks: new Webhooks(this), service: new ServiceState(this) })),
    };
    document.title = this.t('title');
    if (viewer && !this.areas.length) void this.lookForRole();
    void this.open();
  }

  /** Nobody sends to an author what somebody else has typed. */
  private forgetReply() {
    this.remark = new Draft(this, 'decision', { note: '' });
    this.answering = null;
  }

  private editing(): Record<string, Area> {
    const imports = new Imports(this);
    const addMany = (...place: Parameters<Imports['addTo']>) => {
      imports.addTo(...place);
      location.hash = '#/imports';
    };
    return {
      overview: new Overview(this),
      boards: new Boards(this, ({ slug, title }) => addMany('contenders', slug, title)),
      events: new Events(this),
      words: new Words(this, ({ id, name }) => addMany('words', id, name)),
      imports,
    };
  }

  /** Whoever was just given a role need not load the page again. Somebody else may have arrived meanwhile. */
  private async lookForRole() {
    const { viewer } = this;
    await pause(10);
    const data = viewer === this.viewer && (await this.insist(() => service.ask(ADMIN_VIEWER, {})));
    if (data && viewer === this.viewer) this.arrived(data);
  }

  private has = (role: string) => Boolean(this.viewer?.roles?.some((one) => one === role || one === 'admin'));
  private get areas() {
    const comments = this.has('moderator') && ['comments/held', 'comments/latest'];
    const first = [this.has('editor') && 'overview', comments].flat().filter(Boolean) as string[];
    return [...new Set([...first, ...Object.keys(this.others)])];
  }
  private get place() {
    const asked = location.hash.slice(2);
    return this.areas.includes(asked) ? asked : this.areas[0];
  }

  /** Opens the area that the address names; also when its link is pressed again. */
  private enter() {
    this.say(''); // what was said is about the area before
    this.current = null;
    void this.open();
  }

  /** Of what waits `first` is shown first, whether it waits or not. */
  private async open(first: Comment[] = []) {
    const { place } = this;
    const read = this.find('article:focus-within');
    this.shown = this.history = null;
    this.render();
    if (place && this.others[place]) {
      await this.others[place].open();
    } else if (place) {
      this.chosen.clear();
      this.shown = new Pages(this, 'comment', (after) => (place === 'comments/held' ? this.readQueues(after, first) : service.ask(LATEST_COMMENTS, { after }).then((data) => data.latestComments)));
      await this.shown.open();
      this.followAnswer();
      if (place === this.place) await this.go(this.current ?? this.list?.[0]?.id ?? null);
      if (read && !read.isConnected) await this.focus('article.current');
    }
    this.render();
  }

  // ── comments ──

  /** What is held and what is reported, the oldest first, after those that are shown already. */
  private async readQueues(after: string | null, first: Comment[]) {
    const [held = null, reported = null]: (string | null)[] = JSON.parse(after ?? '[]');
    const data = await service.ask(HELD_COMMENTS, { held, reported });
    this.queued = Math.min(data.held.waiting + data.reported.waiting, MOST_COUNTED + 1);
    const { nodes, pageInfo } = oldest([data.held, data.reported], [held, reported]);
    const before = after ? this.list! : first;
    const more = nodes.filter(({ id }) => !before.some((one) => one.id === id));
    return { nodes: after ? more : [...first, ...more], pageInfo };
  }

  private get list() {
    return this.shown?.nodes ?? null;
  }

  private get here() {
    return this.list?.find(({ id }) => id === this.current);
  }

  private async show(list: Comment[], current: string | null) {
    this.shown!.nodes = list;
    this.followAnswer();
    await this.go(current);
  }

  private async go(comment: string | null) {
    this.current = comment;
    const author = this.here?.author.id;
    this.render();
    if (!author || author === this.history?.id) return;
    const data = await this.insist(() => service.ask(HISTORY, { user: author }));
    if (author === this.here?.author.id) this.history = data?.user ?? null;
    this.render();
  }

  /** What came above a comment may have moved it while it was pressed: then no click is about it. */
  private goToPressed() {
    const pressed = this.list?.[Number(this.find('article:focus-within')?.id.slice('comment-'.length))];
    if (pressed && pressed.id !== this.current) void this.go(pressed.id);
  }

  private choose(id: string) {
    if (!this.chosen.delete(id)) this.chosen.add(id);
    this.render();
  }

  private async decide(status: Status, ground?: string, comments = this.targets()) {
    const note = ground && this.remark.values.note.trim() || undefined;
    const input = { comments: comments.map(({ id }) => id), revisions: comments.map(({ revision }) => revision), status, ground, note, idempotencyKey: newKey() };
    const answer = comments.length ? await this.mutate(MODERATE_COMMENTS, { input }) : null;
    if (!answer) return null;
    if (answer.code) {
      await this.remark.refuse(answer);
      return null;
    }
    this.isStale = answer.refused.length > 0;
    await this.further?.refusal(this, ...answer.refused);
    if (!this.isStale && note === this.remark.values.note.trim()) this.remark.values.note = '';
    const refused = new Set(answer.refused.map(({ message }: { message: string }) => message));
    this.say(`${this.t('decided', { n: answer.comments.length })} ${[...refused].join(' ')}`);
    return answer.comments as Comment[];
  }

  /** What the next decision is about: of more than it may be about the rest stays chosen. */
  private targets = () => (this.list ?? []).filter(({ id }) => (this.chosen.size ? this.chosen.has(id) : id === this.current)).slice(0, AT_ONCE);

  /**
   * A key that is pressed before the answer to another is about what is next then. What is shown anew is not decided
   * about, but what was decided before is taken back.
   */
  private inTurn(act: () => Promise<boolean>, isOfShown = true) {
    const { shown, deciding } = this;
    const turn = (this.deciding = (async () => (await deciding) !== false && (!isOfShown || shown === this.shown) && act())());
    void turn.finally(() => { if (turn === this.deciding) this.deciding = null; });
  }

  /** Whether something was decided. An answer that is being typed to one of them would go with its comment. */
  private async settle(status: Status, ground?: string) {
    const before = this.targets();
    const { answering } = this;
    if (answering && before.some(({ id }) => id === answering.id) && (await answering.draft.comesFirst(answering.name, 'body'))) return false;
    const decided = await this.decide(status, ground, before);
    if (!decided) return false;
    void this.showDecided(before, decided);
    return decided.length > 0;
  }

  private async showDecided(before: Comment[], decided: Comment[]) {
    const ids = new Set(decided.map(({ id }) => id));
    this.last = decided.map((one) => {
      const { status, reportReasons } = before.find(({ id }) => id === one.id)!;
      return { ...one, status, reportReasons };
    });
    ids.forEach((id) => this.chosen.delete(id));
    const { list, current, place } = this;
    if (!list) return; // another area was opened meanwhile
    if (this.isStale) return this.open(); // to show what others have made of it
    if (place !== 'comments/held') return this.showInPlace(decided, current);
    const left = list.filter(({ id }) => !ids.has(id));
    const waited = list.filter(({ id, status, reportReasons }) => ids.has(id) && (status === 'PENDING' || reportReasons?.length));
    if (this.queued <= MOST_COUNTED) this.queued -= waited.length;
    const read = this.find('article:focus-within');
    // The one that was moved to meanwhile stays the current one.
    const next = list.slice(Math.max(0, this.placeOf(current))).find((one) => left.includes(one)) ?? left.at(-1);
    await this.show(left, next?.id ?? null);
    if (!left.length) await this.open(); // there may be more than one page of them
    if (read && !read.isConnected) await this.focus('article.current');
  }

  private showInPlace(changed: Comment[], current: string | null) {
    return this.show(this.list!.map((one) => changed.find(({ id }) => id === one.id) ?? one), current);
  }

  private async beginAnswer({ id, author: { name }, answer }: Comment) {
    if (await this.answering?.draft.comesFirst(this.answering.name, 'body')) return;
    this.answering = { id, name, draft: new Draft(this, 'answer', { body: answer?.body ?? '' }) };
    await this.focus('#answer-body');
  }

  /** What somebody else has answered meanwhile is seen before it is replaced. */
  private followAnswer() {
    const now = this.list?.find(({ id }) => id === this.answering?.id);
    if (now) this.answering!.draft.follow({ body: now.answer?.body ?? '' });
  }

  private async readAnswered(id: string) {
    const data = await this.insist(() => service.ask(ANSWERED_COMMENT, { id }));
    if (data?.comment && this.list) await this.showInPlace([data.comment], this.current);
  }

  private async answer(event: Event, { id, revision }: Comment) {
    event.preventDefault();
    const { draft } = this.answering!;
    const answer = await draft.send(ANSWER_FOR_SITE, { comment: id, ...draft.values, revision }, () => this.readAnswered(id));
    if (!answer) return;
    this.last = this.last.map((one) => (one.id === id ? { ...one, revision: answer.comment.revision } : one)); // it can still be undone
    if (this.answering?.draft === draft && !draft.isChanged) await this.closeAnswer();
    this.say(this.t('saved'));
  }

  private async closeAnswer() {
    this.answering = null;
    await this.focus('article.current button');
  }

  /** Gives the comments of the last decision the status that each had. The next key is about the first of them. */
  private async undo() {
    const { last } = this;
    if (!last.length) return true;
    const back: Comment[] = [];
    let refused = '';
    for (const status of new Set(last.map((one) => one.status))) {
      const decided = await this.decide(status, undefined, last.filter((one) => one.status === status));
      if (!decided) return false;
      back.push(...decided);
      if (this.isStale) refused = this.said;
    }
    this.isStale = Boolean(refused);
    const unreported = back.filter(({ id }) => last.find((one) => one.id === id)!.reportReasons?.length);
    this.last = [];
    this.chosen.clear();
    this.current = last[0]!.id;
    if (this.list && !this.isStale && this.place === 'comments/latest') {
      // One that was decided about elsewhere may be older than what is shown.
      this.shown!.nodes = [...back.filter(({ id }) => this.placeOf(id) < 0), ...this.list];
      await this.showInPlace(back, this.current);
    } else await this.open(unreported.filter(({ status }) => status === 'PUBLISHED')); // which nobody would see any more
    await this.focus('article.current');
    this.say(refused || this.t(unreported.length ? 'undoneUnreported' : 'undone'));
    return true;
  }

  private placeOf = (comment: string | null) => this.list!.findIndex(({ id }) => id === comment);

  private step(by: number) {
    const place = Math.min(this.placeOf(this.current) + by, this.list!.length - 1);
    void this.go(this.list![Math.max(0, place)]?.id ?? null);
    void this.focus('article.current');
  }

  private press(event: KeyboardEvent) {
    const is = (selector: string) => (event.composedPath()[0] as Element).matches?.(selector);
    const typing = is('input:not([type=checkbox]), textarea, select');
    const key = keyOf(event);
    // The last decision can be taken back while the list, of which it may have left nothing, is read again.
    const counts = this.list || (key === 'u' && this.place?.startsWith('comments/'));
    if (!counts || typing || this.waiting.length || event.ctrlKey || event.metaKey || event.altKey) return;
    const ground = GROUNDS[+key - 1];
    const { here } = this;
    const step = { ArrowDown: 1, ArrowUp: -1 }[key];
    if (step && is('.beside, .within, pre')) return; // which they scroll
    if (step) this.step(step);
    else if (event.repeat) { // a key that is held down decides once, and presses a button once
      if (key !== 'Enter') return;
    }
    else if (key === 'x' && here) this.choose(here.id);
    else if (key === 'a') this.inTurn(() => this.settle('PUBLISHED'));
    else if (key === 'u') this.inTurn(() => this.undo(), false);
    else if (ground) this.inTurn(() => this.settle('REJECTED', ground));
    else return;
    event.preventDefault();
  }

  // ── views ──

  /** What has the focus may go, as a button that was pressed does: then the heading of what is shown has it. */
  override render() {
    const read = this.find(':focus');
    super.render();
    queueMicrotask(() => read && !read.isConnected && !this.find(':focus') && this.find('[tabindex="-1"]:is(h2, h3)')?.focus());
  }

  protected view() {
    return (
      <div class="stack">
        <header class="row between">
          <h1>{this.t('title')}</h1>
          {this.viewer && <p class="row soft"><span dir="auto">{this.viewer.name}</span><button type="button" onclick={() => this.signOut()}>{this.t('signOut')}</button></p>}
          <nav class="row" aria-label={this.t('title')}>
            {this.areas.map((area) => <a href={`#/${area}`} aria-current={area === this.place && 'page'} onclick={() => { if (location.hash === `#/${area}`) this.enter(); }}>{this.t(area.split('/').pop()!)}</a>)}
          </nav>
        </header>
        <main class="list">{this.inside()}{this.sentView()}{this.note()}</main>
        {this.sessionDialog()}
      </div>
    );
  }

  private inside() {
    if (this.viewer === undefined) return <p>{this.t('loading')}</p>;
    if (!this.areas.length) {
      return <div class="stack"><p>{this.t('onlyRoles')}</p>{this.viewer ? <p>{this.t('noRole', { name: this.viewer.name })}</p> : <div class="row">{this.signInButton()}{this.demoButtons()}</div>}</div>;
    }
    const other = this.others[this.place!];
    return other ? other.view() : this.comments();
  }

  private comments() {
    const list = this.list;
    return (
      <div class="two">
        <section class="list">
          <h2>{this.t(this.place!.split('/').pop()!)}</h2>
          {list && this.place === 'comments/held' && <p>{this.t('inQueue', { n: this.queued > MOST_COUNTED ? `${this.number(MOST_COUNTED)}+` : this.queued })}</p>}
          <p class="soft">{this.t('keys')}</p>
          {this.remark.field('note', this.t('noteToAuthor'))}
          <div class="row actions">
            <button type="button" class="primary" onclick={firstClick(() => this.inTurn(() => this.settle('PUBLISHED')))}>{this.t('publish')}</button>
            <span>{this.t('reject')}</span>
            {GROUNDS.map((ground, place) => <button type="button" onclick={firstClick(() => this.inTurn(() => this.settle('REJECTED', ground)))}>{`${place + 1} ${this.t(ground)}`}</button>)}
            <button type="button" aria-disabled={!this.last.length && 'true'} onclick={() => this.inTurn(() => this.undo(), false)}>{this.t('undo')}</button>
            <button type="button" onclick={() => { this.chosen = new Set(list?.map(({ id }) => id)); this.render(); }}>{this.t('chooseAll')}</button>
          </div>
          {!list ? this.shown?.waiting() : !list.length ? <p>{this.t('nothing')}</p> : list.map((comment, place) => this.comment(comment, place))}
          {this.shown?.button()}
        </section>
        {this.before('stack beside wide')}
      </div>
    );
  }

  /** What the author of the current comment wrote before: beside the list, and in the article where there is no room beside. */
  private before(place: string) {
    return (
      <section class={place} tabindex={this.history ? 0 : undefined}>
        {this.history && <h2>{this.t('history', { name: this.marked(this.history) })}</h2>}
        {this.history?.comments.nodes.map(({ id, body, language, createdAt, status }) => (
          <div key={id}><p class="soft">{this.date(createdAt)} · {this.t(status)}</p><p class="body" lang={language} dir="auto">{body}</p></div>
        ))}
      </section>
    );
  }

  /** A review's stars and a comment's language, before when it was written. */
  private kindOf({ rating, language }: Comment) {
    const name = new Intl.DisplayNames(this.language, { type: 'language', fallback: 'code' }).of(language);
    const stars = rating && [<span aria-hidden="true">{'★'.repeat(rating)}{'☆'.repeat(5 - rating)}</span>, <span class="hidden">{this.t('stars', { n: rating })}</span>, ' · '];
    return [stars, `${name} · `];
  }

  /** The site's answer, and what an editor does about it. */
  private answerOf(comment: Comment) {
    const { id, author: { name }, answer } = comment;
    if (this.answering?.id !== id) {
      return (
        <div class="row">
          {answer && <p class="body" dir="auto">{this.t('answer', { text: answer.body })}</p>}
          {this.has('editor') && <button type="button" onclick={() => this.beginAnswer(comment)}>{this.t('answerIt')}<span class="hidden"> {name}</span></button>}
        </div>
      );
    }
    return (
      <form class="stack" onsubmit={(event: Event) => this.answer(event, comment)}>
        {this.answering.draft.field('body', this.t('answerAs', { name }), { tag: 'textarea', rows: 3, dir: 'auto' })}
        <div class="row">
          <button type="submit" class="primary">{this.t('save')}</button>
          <button type="button" onclick={() => this.closeAnswer()}>{this.t('cancel')}</button>
        </div>
      </form>
    );
  }

  /** A name within a text; that of a guest may be anybody's. */
  private marked = ({ name, isGuest }: { name: string; isGuest: boolean }) => (isGuest ? `${name} (${this.t('guest')})` : name);

  private comment(comment: Comment, place: number) {
    const { id, author, product, language, createdAt, body, title, status, heldBy, thread, inReplyTo, reportReasons } = comment;
    // What is pressed stays where it is until it is released: then its click is about the comment.
    const focused = () => this.find('article:active') || this.go(id);
    return (
      <article key={id} id={`comment-${place}`} class={id === this.current ? 'current' : ''} tabindex="-1" aria-current={id === this.current && 'true'} onclick={() => this.go(id)} onfocus={focused}>
        <label class="pick"><input type="checkbox" checked={this.chosen.has(id)} onfocus={focused} onchange={() => this.choose(id)} />{this.t('choose')}<span class="hidden"> {author.name}</span></label>
        <p><strong dir="auto">{author.name}</strong> {author.isGuest && this.t('guest')} <span class="soft">{product} · {this.kindOf(comment)}{this.date(createdAt)} · {this.t(status)}</span></p>
        {thread && <p class="soft" dir="auto">{inReplyTo && !inReplyTo.removed ? this.t('replyTo', { name: this.marked(inReplyTo.author), text: inReplyTo.body.slice(0, 200) }) : this.t('replyToGone')}</p>}
        {heldBy && <p class="error">{this.t('heldBy', { rule: heldBy })}</p>}
        {reportReasons?.length ? <p class="error">{this.t('reported', { reasons: reportReasons.join(', ') })}</p> : null}
        {title && <p lang={language} dir="auto"><strong>{title}</strong></p>}
        <p class="body" lang={language} dir="auto">{body}</p>
        {this.answerOf(comment)}
        {id === this.current && this.history?.id === author.id && this.before('stack within')}
      </article>
    );
  }
}

/** Those that say in English alone what exactly is wrong: that stays behind the text of the page's language. */
const EXACT = ['INVALID_INPUT', 'CONFLICT', 'NOT_ALLOWED', 'LOCKED'];

/** Puts refusals into the page's language, as the elements do. What cannot be reached loads no texts either. */
async function refusal(part: Part<any>, ...fields: any[]) {
  const refused: Refused[] = fields.filter((field) => field?.code && field.code !== 'OFFLINE');
  if (!refused.length) return;
  const english = refused.map(({ message }) => message);
  for (const each of refused) if (each.code === 'BAD_USER_INPUT') each.code = 'INVALID_INPUT'; // a query's name for it
  await import('../refusals').then((module) => module.default(part, refused)).catch(() => {});
  for (const [place, each] of refused.entries()) {
    if (EXACT.includes(each.code) && each.message !== english[place]) each.message += ` \u2068${english[place]}\u2069`;
  }
}

const TEXTS: Record<string, () => Promise<any[]>> = {
  de: () => Promise.all([import('translated:admin/texts/de'), import('translated:texts/de')]),
  es: () => Promise.all([import('translated:admin/texts/es'), import('translated:texts/es')]),
  ar: () => Promise.all([import('translated:admin/texts/ar'), import('translated:texts/ar')]),
};

customElements.define(
  'ringside-admin',
  class extends HTMLElement {
    async connectedCallback() {
      this.attachShadow({ mode: 'open' });
      document.body.style.margin = '0';
      const language = document.documentElement.lang;
      const first = service.ask(ADMIN_VIEWER, {});
      first.catch(() => {}); // the part looks at it
      const loaded = await TEXTS[language]?.().catch(() => null); // without them the pages are in English
      const translated = loaded && { language, admin: loaded[0].default, common: loaded[1].default.common, further: { refusal } };
      void new Admin(this, translated).start(first, [ADMIN_VIEWER, {}]);
    }
  },
);
