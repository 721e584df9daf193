// Boards: making one, its hours and voters, its contenders, and voters who vote as honest ones rarely do.

import { h } from '../base/dom';
import { newKey } from '../base/part';
import { ask } from '../service';
import {
  ADD_CONTENDER, BOARDS, BOARD_CARD, type BoardCardData, type BoardsData, CREATE_BOARD, FIND_SUSPECTS, ONE_CONTENDER, type OneContenderData,
  RESTORE_CONTENDER, RESTORE_VOTERS, RETIRE_CONTENDER, SUSPECTS, type SuspectsData, UPDATE_BOARD, UPDATE_CONTENDER, VOID_VOTER, VOID_VOTERS,
} from '../generated/admin';
import { type Area, type Page, ended, firstClick, local, moment, time } from './area';
import { Draft } from './draft';
import { Pages, Rows } from './pages';
import { Picture } from './picture';

type Board = NonNullable<BoardCardData['board']>;
type Contender = Board['contenders']['nodes'][number];
type Search = SuspectsData['suspects'];
type Suspect = Search['nodes'][number];
type Stored = Extract<OneContenderData['node'], { name: string }>;
type Texts = { name: string; description: string; link: string; imageUrl: string; svg: string };
/** The contender that is being changed, and the button that opened its form. */
type Edited = { contender: Stored; button: string; draft: Draft<Texts>; picture: Picture<Texts> };
type Settings = { title: string; opensAt: string; closesAt: string; electorate: string; membersSince: string; resultsVisible: string };
type Forms = { settings: Draft<Settings>; contender: Draft<Texts>; picture: Picture<Texts> };

const ELECTORATES = ['EVERYBODY', 'MEMBERS'];
const RESULTS = ['ALWAYS', 'AFTER_VOTING', 'AFTER_CLOSE'];
/** How improbable the votes of suspects may be asked to be at most. */
const AT_MOST = ['0.1', '0.01', '0.001', '0.0001'];
/** As many voters as one request may void. */
const AT_ONCE = 100;
const NO_SLUG = /[^a-z0-9]+/g;
/** For so long, in milliseconds, votes that were voided can be restored. */
const RESTORABLE = 86_400_000;

/** The jobs of one press of the button that voids votes, and when it was. */
type Voiding = { at: number; jobs: string[] };

/** A board's name in addresses, made of its title. Of some scripts no letter counts there. */
const slugOf = (title: string) =>
  title.normalize('NFKD').toLowerCase().replace(/\p{M}/gu, '').replaceAll('ß', 'ss').replace(NO_SLUG, '-').slice(0, 64).replace(/^-|-$/g, '') || `board-${Date.now().toString(36)}`;

const texts = ({ name, description, link, imageUrl, svg }: Stored): Texts => ({
  name, description: description ?? '', link: link ?? '', imageUrl: imageUrl ?? '', svg: svg ?? '',
});

/** Texts as an input has them. */
const given = (values: Partial<Texts>) => Object.fromEntries(Object.entries(values).map(([name, text]) => [name, text || null]));

/** The board as it is now, with the pages of contenders that were read after the first. */
function withMore(now: Board, before: Board): Board {
  const first = new Set(now.contenders.nodes.map(({ id }) => id));
  const more = before.contenders.nodes.slice(first.size).filter(({ id }) => !first.has(id));
  if (!more.length) return now;
  return { ...now, contenders: { nodes: [...now.contenders.nodes, ...more], pageInfo: before.contenders.pageInfo } };
}

export class Boards implements Area {
  private boards: Pages<BoardsData['boards']['nodes'][number]>;
  private board: Board | null = null;
  private wanted = '';
  private fresh: Draft<{ title: string; slug: string }>;
  /** What is typed about the boards, by board. */
  private forms: Record<string, Forms> = {};
  private edited: Edited | null = null;
  private voter: Draft<{ voter: string; sameAddress: boolean }>;
  private suspects: Pages<Suspect> | null = null;
  /** What was said with the suspects of all that the search has found. */
  private search: Search | null = null;
  private suspected = new Set<string>();
  private atMost = '0.01';
  /** What was voided, by board, where the browser does not keep it. */
  private voided: Record<string, Voiding[]> = {};
  /** Until a voiding has ended nothing of it can be restored. */
  private isVoiding = false;
  private drawn = new Rows<Contender>();

  /** `addMany` leads to where a list of contenders is pasted. */
  constructor(private page: Page, private addMany: (board: Board) => void) {
    this.boards = new Pages(page, 'board', (after) => ask(BOARDS, { after }).then((data) => data.boards));
    this.fresh = new Draft(page, 'new-board', { title: '', slug: '' });
    this.voter = new Draft(page, 'void', { voter: '', sameAddress: false });
  }

  open() {
    return this.boards.open();
  }

  private newForms(values: Settings): Forms {
    const contender = new Draft<Texts>(this.page, 'contender', { name: '', description: '', link: '', imageUrl: '', svg: '' });
    return { settings: new Draft<Settings>(this.page, 'board', values), contender, picture: new Picture(this.page, contender) };
  }

  // ── a board ──

  private async create(event: Event) {
    event.preventDefault();
    if (await this.contenderComesFirst()) return;
    const { title, slug } = this.fresh.values;
    const made = await this.fresh.send(CREATE_BOARD, { title, slug: slug || slugOf(title) });
    if (!made) return;
    this.fresh.clear();
    await this.open();
    await this.choose(made.board.slug);
    this.page.say(this.page.t('boardMade', { name: made.board.title }));
  }

  private async choose(slug: string) {
    if (await this.contenderComesFirst()) return;
    this.wanted = slug;
    [this.suspects, this.search, this.edited] = [null, null, null];
    this.suspected.clear();
    await this.read(slug);
    if (this.wanted === slug) await this.page.focus('#chosen-board');
  }

  /** Also what is typed follows: a change of somebody else is seen before it is overwritten. */
  private async read(slug: string) {
    const data = await this.page.insist(() => ask(BOARD_CARD, { board: slug }));
    if (!data?.board || this.wanted !== slug) return;
    const { title, opensAt, closesAt, electorate, membersSince, resultsVisible } = data.board;
    const times = { opensAt: local(opensAt), closesAt: local(closesAt), membersSince: local(membersSince) };
    const values = { title, ...times, electorate, resultsVisible };
    (this.forms[slug] ??= this.newForms(values)).settings.follow(values);
    this.board = this.board?.slug === slug ? withMore(data.board, this.board) : data.board;
    // Whoever has joined since all pages were read is on none of them.
    if (this.board !== data.board && !this.board.contenders.pageInfo.hasNextPage) await this.append();
  }

  private async more() {
    const first = this.board!.contenders.nodes.length;
    if (await this.append()) await this.page.focus(`#contender-${first}`);
  }

  /** Reads the contenders after those that are shown; whether there were any, and the board is still as it was. */
  private async append() {
    const { board } = this;
    const data = await this.page.insist(() => ask(BOARD_CARD, { board: board!.slug, after: board!.contenders.pageInfo.endCursor }));
    const next = data?.board?.contenders;
    if (!next?.nodes.length || this.board !== board) return false;
    this.board = { ...board!, contenders: { ...next, nodes: [...board!.contenders.nodes, ...next.nodes] } };
    return true;
  }

  private async save(event: Event) {
    event.preventDefault();
    const { board } = this;
    const { settings } = this.forms[board!.slug]!;
    const { title, opensAt, closesAt, electorate, membersSince, resultsVisible } = settings.values;
    const changed: Record<string, unknown> = { title, electorate, resultsVisible };
    if (opensAt !== local(board!.opensAt)) changed.opensAt = moment(opensAt);
    if (closesAt !== local(board!.closesAt)) changed.closesAt = moment(closesAt);
    if (electorate === 'MEMBERS' && membersSince !== local(board!.membersSince)) changed.membersSince = moment(membersSince);
    const answer = await settings.send(UPDATE_BOARD, { slug: board!.slug, ...changed, revision: board!.revision }, () => this.read(board!.slug));
    if (!answer) return;
    await this.open();
    this.page.say(this.page.t('saved'));
  }

  // ── contenders ──

  private async add(event: Event) {
    event.preventDefault();
    const { slug } = this.board!;
    const { contender, picture } = this.forms[slug]!;
    const { name } = contender.values;
    if (!(await contender.send(ADD_CONTENDER, { board: slug, ...given(contender.values) }))) return;
    contender.clear();
    picture.leaveOut();
    await this.read(slug);
    this.page.say(this.page.t('contenderAdded', { name }));
    if (this.board?.slug === slug) await this.page.focus('#contender-name');
  }

  private async load(id: string) {
    const data = await this.page.insist(() => ask(ONE_CONTENDER, { contender: id }));
    return (data?.node ?? null) as Stored | null;
  }

  private async edit({ id }: Contender, button: string) {
    if (await this.contenderComesFirst()) return;
    const contender = await this.load(id);
    if (!contender || (await this.contenderComesFirst())) return;
    const draft = new Draft<Texts>(this.page, 'contender-edit', texts(contender));
    this.edited = { contender, button, draft, picture: new Picture(this.page, draft) };
    await this.page.focus('#contender-edit-name');
  }

  private async contenderComesFirst() {
    const { edited } = this;
    return edited?.draft.comesFirst(edited.contender.name, 'name');
  }

  private async close() {
    const { button } = this.edited!;
    this.edited = null;
    await this.page.focus(`#${button}`);
  }

  private async change(event: Event, edited: Edited) {
    event.preventDefault();
    const { contender: { id, revision }, draft } = edited;
    const answer = await draft.send(UPDATE_CONTENDER, { contender: id, ...given(draft.changed), revision }, () => this.rereadEdited(edited));
    if (!answer) return;
    this.rename(answer.contender);
    this.page.say(this.page.t('saved'));
    if (this.edited === edited) await this.close();
  }

  private async rereadEdited(edited: Edited) {
    const contender = await this.load(edited.contender.id);
    if (!contender) return;
    edited.contender = contender;
    edited.draft.follow(texts(contender));
    this.rename(contender);
  }

  private rename({ id, name }: { id: string; name: string }) {
    this.board!.contenders.nodes = this.board!.contenders.nodes.map((one) => (one.id === id ? { ...one, name } : one));
  }

  private async retire({ id, name, retired }: Contender) {
    const answer = await this.page.mutate<any>(retired ? RESTORE_CONTENDER : RETIRE_CONTENDER, { input: { contender: id, idempotencyKey: newKey() } });
    if (!answer) return;
    if (answer.code) return this.page.say(this.page.refusal(answer));
    this.board!.contenders.nodes = this.board!.contenders.nodes.map((one) => (one.id === id ? { ...one, retired: !retired } : one));
    await this.read(this.board!.slug);
    this.page.say(this.page.t(retired ? 'contenderBack' : 'contenderRetired', { name }));
  }

  // ── suspects ──

  /** The id of a job that did its work; `begun` hears of it before it is waited for. */
  private async job(document: any, input: object, begun?: (job: string) => void): Promise<string | null> {
    const answer = await this.page.mutate(document, { input: { ...input, idempotencyKey: newKey() } });
    if (answer?.code) this.page.say(this.page.refusal(answer));
    if (!answer?.job) return null;
    begun?.(answer.job.id);
    return (await ended(this.page, answer.job.id)) ? answer.job.id : null;
  }

  private async seek() {
    const { slug } = this.board!;
    if ((await this.job(FIND_SUSPECTS, { board: slug })) && this.wanted === slug) await this.goToSuspects();
  }

  private async goToSuspects() {
    if (await this.showSuspects()) await this.page.focus('#suspects');
  }

  /** Whether they are shown: no other board and no other probability was chosen meanwhile. */
  private async showSuspects(): Promise<boolean> {
    const { atMost, board } = this;
    const { slug } = board!;
    let search: Search | null = null;
    const suspects = new Pages<Suspect>(this.page, 'suspect', (after) => ask(SUSPECTS, { board: slug, atMost: Number(atMost), after }).then((data) => (search = data.suspects)));
    await suspects.open();
    if (this.wanted !== slug || this.atMost !== atMost) return false;
    [this.suspects, this.search] = [suspects, search];
    this.suspected.clear();
    this.page.render();
    return true;
  }

  private async voidChosen() {
    const voters = [...this.suspected];
    if (!voters.length) return this.page.say(this.page.t('chooseVoters'));
    const { slug } = this.board!;
    const jobs: string[] = [];
    const begun = (job: string) => {
      jobs.push(job);
      this.keep(slug, [{ at: Date.now(), jobs }, ...this.without(slug, jobs)]);
    };
    this.isVoiding = true;
    for (let first = 0; first < voters.length; first += AT_ONCE) {
      if (!(await this.job(VOID_VOTERS, { board: slug, voters: voters.slice(first, first + AT_ONCE) }, begun))) break;
    }
    this.isVoiding = false;
    await this.reread(slug);
  }

  /** One voter whom no search has found. */
  private async voidOne(event: Event) {
    event.preventDefault();
    const { slug } = this.board!;
    const { voter, sameAddress } = this.voter.values;
    const answer = await this.voter.send(VOID_VOTER, { board: slug, voter: voter.trim(), sameAddress });
    if (!answer) return;
    this.voter.clear();
    if (!answer.job) this.page.say(this.page.t('votesVoided', { n: answer.votesRemoved }));
    else await ended(this.page, answer.job.id);
    await this.reread(slug);
  }

  /** What was voided last, of several times. */
  private async restore() {
    const { slug } = this.board!;
    for (const job of this.voidedOn(slug)[0]?.jobs ?? []) {
      if (!(await this.job(RESTORE_VOTERS, { job }))) break;
      this.keep(slug, this.without(slug, [job]));
    }
    await this.reread(slug);
  }

  private without(slug: string, jobs: string[]) {
    const left = this.voidedOn(slug).map((each) => ({ ...each, jobs: each.jobs.filter((job) => !jobs.includes(job)) }));
    return left.filter((each) => each.jobs.length);
  }

  /** What was voided on a board from this browser, the latest first, as long as it can be restored. */
  private voidedOn(slug: string): Voiding[] {
    let kept = this.voided[slug] ?? [];
    try {
      kept = JSON.parse(localStorage.getItem(`ringside voided ${slug}`)!) ?? kept;
    } catch { /* blocked */ }
    return kept.filter(({ at }) => Date.now() - at < RESTORABLE);
  }

  private keep(slug: string, voided: Voiding[]) {
    this.voided[slug] = voided;
    try {
      localStorage.setItem(`ringside voided ${slug}`, JSON.stringify(voided));
    } catch { /* blocked or full: until the page is closed */ }
  }

  private async reread(slug: string) {
    if (this.wanted === slug) await this.read(slug);
    this.page.render();
  }

  // ── views ──

  view() {
    const { page } = this;
    return (
      <div class="stack">
        <h2>{page.t('boards')}</h2>
        <form class="row end" onsubmit={(event: Event) => this.create(event)}>
          {this.fresh.field('title', page.t('newBoard'), { required: true })}
          {this.fresh.field('slug', page.t('slug'), { placeholder: page.t('slugHint') })}
          <button type="submit">{page.t('create')}</button>
        </form>
        {!this.boards.nodes ? this.boards.waiting() : (
          <ul class="row">
            {this.boards.nodes.map(({ slug, title, opensAt, closed }, place) => (
              <li key={slug}><button id={`board-${place}`} type="button" aria-pressed={String(slug === this.board?.slug)} onclick={() => this.choose(slug)}>
                <span dir="auto">{title}</span>{closed && ` · ${this.whyClosed(opensAt)}`}
              </button></li>
            ))}
          </ul>
        )}
        {this.boards.button()}
        {this.board && this.chosen(this.board)}
      </div>
    );
  }

  /** A board takes no votes before it opens, either. */
  private whyClosed(opensAt: string | null) {
    const { page } = this;
    const opens = opensAt && page.secondsTo(opensAt) > 0;
    return opens ? `${page.t('opensAt')} ${time(page, opensAt)}` : page.t('closed');
  }

  private chosen(board: Board) {
    const { page } = this;
    const forms = this.forms[board.slug]!;
    return (
      <section class="stack" key={board.slug}>
        <h2 id="chosen-board" tabindex="-1" dir="auto">{board.title}</h2>
        <div class="row between">
          <p class="soft">{page.t('boardCounts', { contenders: board.contenderCount, votes: board.votes ?? 0 })}</p>
          <button type="button" onclick={() => this.addMany(board)}>{page.t('imports')}</button>
        </div>
        <div class="two even">
          {this.settingsForm(forms)}
          {this.contenderForm(forms)}
        </div>
        {this.contenders(board)}
        {this.suspectsSection()}
      </section>
    );
  }

  private settingsForm({ settings: draft }: Forms) {
    const { page } = this;
    const options = (names: string[]) => names.map((name) => <option value={name}>{page.t(name)}</option>);
    return (
      <form class="stack" onsubmit={(event: Event) => this.save(event)}>
        <h3>{page.t('settings')}</h3>
        {draft.field('title', page.t('boardTitle'), { required: true })}
        {draft.field('opensAt', page.t('opensAt'), { type: 'datetime-local' })}
        {draft.field('closesAt', page.t('closesAt'), { type: 'datetime-local' })}
        {draft.field('electorate', page.t('electorate'), { tag: 'select' }, ...options(ELECTORATES))}
        {draft.values.electorate === 'MEMBERS' && draft.field('membersSince', page.t('membersSince'), { type: 'datetime-local', hint: page.t('membersSinceHint') })}
        {draft.field('resultsVisible', page.t('resultsVisible'), { tag: 'select' }, ...options(RESULTS))}
        <div class="row"><button type="submit" class="primary">{page.t('save')}</button></div>
      </form>
    );
  }

  private contenderForm({ contender, picture }: Forms) {
    const { page } = this;
    return (
      <form class="stack" onsubmit={(event: Event) => this.add(event)}>
        <h3>{page.t('addContender')}</h3>
        {contender.field('name', page.t('name'), { required: true })}
        {contender.field('description', page.t('description'))}
        {contender.field('link', page.t('link'), { type: 'url' })}
        {picture.view()}
        <div class="row"><button type="submit">{page.t('add')}</button></div>
      </form>
    );
  }

  private contenders({ contenders }: Board) {
    const { page } = this;
    if (!contenders.nodes.length) return <p>{page.t('noContenders')}</p>;
    return (
      <section class="stack">
        <h3>{page.t('contenders')}</h3>
        <div class="scroll" tabindex="0" role="region" aria-label={page.t('contenders')}>
          <table>
            <thead><tr>{['rank', 'name', 'record', 'score', ''].map((name) => (name ? <th scope="col">{page.t(name)}</th> : <td />))}</tr></thead>
            <tbody>
              {contenders.nodes.map((one, place) => this.place(one, `contender-${place}`))}
            </tbody>
          </table>
        </div>
        {contenders.pageInfo.hasNextPage && <div class="row"><button type="button" onclick={() => this.more()}>{page.t('more')}</button></div>}
      </section>
    );
  }

  private place(one: Contender, button: string) {
    const { edited } = this;
    return edited?.contender.id === one.id ? this.editForm(edited) : this.drawn.of(one, button, () => this.row(one, button));
  }

  private editForm(edited: Edited) {
    const { page } = this;
    const { draft } = edited;
    return (
      <tr key={`edit ${edited.contender.id}`}>
        <td colspan="5">
          <form class="stack" onsubmit={(event: Event) => this.change(event, edited)}>
            {draft.field('name', page.t('name'), { required: true, dir: 'auto' })}
            {draft.field('description', page.t('description'), { tag: 'textarea', rows: 2, dir: 'auto' })}
            {draft.field('link', page.t('link'), { type: 'url' })}
            {edited.picture.view()}
            {draft.field('imageUrl', page.t('imageUrl'), { type: 'url', hint: page.t('imageUrlHint') })}
            <div class="row">
              <button type="submit" class="primary">{page.t('save')}</button>
              <button type="button" onclick={() => this.close()}>{page.t('cancel')}</button>
            </div>
          </form>
        </td>
      </tr>
    );
  }

  private row(one: Contender, id: string) {
    const { page } = this;
    return (
      <tr key={one.id}>
        <td>{one.rank == null ? '–' : page.number(one.rank)}</td>
        <th scope="row" dir="auto">{one.name}{one.retired && ` · ${page.t('retired')}`}</th>
        <td>{page.number(one.wins ?? 0)} – {page.number(one.losses ?? 0)}</td>
        <td>{page.number(one.score ?? 0)}</td>
        <td>
          <button id={id} type="button" onclick={firstClick(() => this.edit(one, id))}>{page.t('edit')}<span class="hidden"> {one.name}</span></button>{' '}
          <button type="button" onclick={firstClick(() => this.retire(one))}>{page.t(one.retired ? 'bringBack' : 'retire')}<span class="hidden"> {one.name}</span></button>
        </td>
      </tr>
    );
  }

  private suspectsSection() {
    const { page, search } = this;
    return (
      <section class="stack">
        <h3 id="suspects" tabindex="-1">{page.t('suspects')}</h3>
        <p class="soft">{page.t('suspectsWhat')}</p>
        <div class="row">
          <button type="button" onclick={() => this.seek()}>{page.t('findSuspects')}</button>
          <button type="button" class="plain" onclick={() => this.goToSuspects()}>{page.t('lastSearch')}</button>
          {!this.isVoiding && this.voidedOn(this.board!.slug).length > 0 && <button type="button" onclick={() => this.restore()}>{page.t('restoreVotes')}</button>}
        </div>
        {search && (search.computedAt ? this.lastSearch(search) : <p>{page.t('noSearch')}</p>)}
        <form class="stack" onsubmit={(event: Event) => this.voidOne(event)}>
          {this.voter.field('voter', page.t('voterId'), { required: true, hint: page.t('voterIdHint') })}
          {this.voter.field('sameAddress', page.t('sameAddress'), { type: 'checkbox' })}
          <div class="row"><button type="submit">{page.t('voidVoter')}</button></div>
        </form>
      </section>
    );
  }

  private lastSearch(search: Search) {
    const { page } = this;
    const percent = (value: string) => page.number(Number(value), { style: 'percent', maximumFractionDigits: 2 });
    const choose = ({ currentTarget }: any) => {
      this.atMost = currentTarget.value;
      void this.showSuspects();
    };
    return (
      <div class="stack">
        <p>{page.t('searchedAt', { date: time(page, search.computedAt!) })}</p>
        <div class="row"><label>{page.t('atMost')}<select value={this.atMost} onchange={choose}>
          {AT_MOST.map((value) => <option value={value}>{percent(value)}</option>)}
        </select></label></div>
        {this.found(search, this.suspects!)}
      </div>
    );
  }

  private found({ votesSeen, expectedHonest }: Search, suspects: Pages<Suspect>) {
    const { page } = this;
    const shown = suspects.nodes!;
    if (!shown.length) return <p>{page.t('noSuspects', { n: votesSeen })}</p>;
    const choose = (voter: string) => {
      if (!this.suspected.delete(voter)) this.suspected.add(voter);
      page.render();
    };
    return (
      <div class="stack">
        <p>{page.t('suspectsOf', { n: votesSeen, honest: page.number(expectedHonest, { maximumFractionDigits: 1 }) })}</p>
        <ul class="stack">
          {shown.map((one, place) => (
            <li key={one.voter}>
              <label class="pick"><input id={`suspect-${place}`} type="checkbox" checked={this.suspected.has(one.voter)} onchange={() => choose(one.voter)} />
                {page.t('suspect', { place: place + 1, n: one.votes })}</label>
              <p class="soft">{page.t('probability', { value: page.number(one.probability, { style: 'percent', maximumSignificantDigits: 2 }) })}</p>
              <ul class="reasons">{one.reasons.map((reason) => <li>{reason}</li>)}</ul>
              {one.changes.map(({ contender, rank, without }) => <p class="soft">{page.t('rankChange', { name: contender.name, rank, without })}</p>)}
            </li>
          ))}
        </ul>
        {suspects.button()}
        <div class="row">
          <button type="button" onclick={() => { this.suspected = new Set(shown.map(({ voter }) => voter)); page.render(); }}>{page.t('chooseAll')}</button>
          <button type="button" class="primary" onclick={() => this.voidChosen()}>{page.t('voidVotes')}</button>
        </div>
      </div>
    );
  }
}
