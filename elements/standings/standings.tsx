// <ringside-standings season="2026">: who leads a season, among all or in a league, while points come in.

import { type View, h } from '../base/dom';
import { Part, newKey } from '../base/part';
import type { LatestSeasonData, StandingsData } from '../generated/first';
import { LEAGUE_STANDINGS, type LeagueStandingsData } from '../generated/standings.first';
import { JOIN_LEAGUE, SEASON_STANDINGS, STANDINGS_CHANGED } from '../generated/standings';
import type { Ringside } from '../elements';
import css from './standings.css?inline';
import english from 'english:standings';

type Row = StandingsData['standings']['nodes'][number];
type Viewer = StandingsData['viewer'];
type Page = StandingsData['standings'];
type League = NonNullable<LeagueStandingsData['league']>;

/** Where the code that is being typed is kept: the page may be left to sign in. */
const KEPT = 'ringside code';
/** Rows that the service gives at once; of a longer list none changes. */
const MOST = 100;

export default class Standings extends Part<StandingsData | LatestSeasonData> {
  private declare season: string | null;
  private declare leagueId: string;
  private league: League | null = null;
  private rows: Row[] | null = null;
  private declare total: number;
  private more: string | null = null;
  /** Undefined until it is known. */
  protected declare viewer: Viewer | undefined;
  private declare isHidden?: boolean;
  private code = '';
  private declare problem?: string;
  private declare isJoining: boolean;
  private declare isSending?: boolean;
  /** Whether a guest was refused what members may. */
  private declare needsMember?: boolean;
  private soon = 0;
  private declare reading?: Promise<void>;

  constructor(host: HTMLElement, ringside: Ringside, texts: any) {
    super(host, ringside, texts, 'standings', english, css);
    this.season = host.getAttribute('season')?.normalize().match(/\S+/g)?.join(' ') ?? null; // as the service has it
    this.leagueId = host.getAttribute('league') ?? '';
    try {
      this.code = sessionStorage[KEPT] ?? '';
    } catch { /* blocked */ }
    this.isJoining = this.code !== '';
  }

  protected arrived(data: StandingsData | LatestSeasonData) {
    if ('seasons' in data) {
      const [latest] = data.seasons.nodes;
      this.season = latest?.name ?? null;
      this.viewer = data.viewer ? undefined : null;
      if (!latest) this.rows = [];
      else {
        if (!this.leagueId) this.show(latest.standings);
        if (data.viewer) this.reading = this.reload(); // their own row, and their leagues
        else if (this.leagueId) void this.showLeague();
      }
    } else {
      this.viewer = data.viewer;
      if (this.leagueId) void this.showLeague();
      else this.show(data.standings);
    }
    this.render();
  }

  /** A league that was chosen was one of whom was signed in before. */
  protected signedInOrOut() {
    const league = this.host.getAttribute('league') ?? '';
    [this.problem, this.needsMember] = ['', false];
    if (league !== this.leagueId) this.turnTo(league);
    void (this.season ? this.reload() : this.askAgain());
  }

  private reload() {
    return this.showLatest(this.insist(() => this.ringside.ask(SEASON_STANDINGS, { season: this.season!, first: this.size })));
  }

  private show(page: Page, isMore = false) {
    this.rows = isMore ? [...this.rows!, ...page.nodes] : page.nodes;
    this.total = page.totalCount;
    this.more = page.pageInfo.hasNextPage ? page.pageInfo.endCursor : null;
    if (this.rows.length <= MOST) this.watch();
    else {
      clearTimeout(this.soon);
      this.soon = 0;
      this.endStream?.();
    }
  }

  /** How many rows to ask for again, and to listen to: those that are shown, as far as one answer has them. */
  private get size() {
    return Math.min(Math.max(this.rows?.length ?? 0, 10), MOST);
  }

  private watch() {
    const variables = { season: this.season!, league: this.leagueId || null, first: this.size };
    this.listen(STANDINGS_CHANGED, variables, ({ standingsChanged }) => {
      if (JSON.stringify(this.rows) !== JSON.stringify(standingsChanged)) this.readSoon();
      this.rows = standingsChanged;
      this.render();
    });
  }

  /** The reader's own row, and the way to further rows. Not at once with all others who see the change. */
  private readSoon() {
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.readAgain(), 5000 * Math.random());
  }

  /** Ends with the latest reading of all: the rows of an earlier one are not shown. */
  private readAgain() {
    clearTimeout(this.soon);
    this.soon = 0;
    const reading: Promise<void> = (this.leagueId ? this.showLeague() : this.reload()).then(() => (reading === this.reading ? undefined : this.reading));
    return (this.reading = reading);
  }

  private async showLeague(after: string | null = null) {
    const { leagueId } = this;
    const first = after ? 10 : this.size;
    const answer = await this.insist(() => this.ringside.ask(LEAGUE_STANDINGS, { league: leagueId, first, after }));
    if (after) await this.reading; // else it would take the further rows away
    if (!answer || leagueId !== this.leagueId) return; // another one was chosen meanwhile
    if (after && after !== this.more) return; // asked for twice
    this.league = answer.league;
    this.isHidden = !answer.league?.standings;
    this.season = answer.league?.season ?? this.season;
    if (answer.league?.standings) this.show(answer.league.standings, Boolean(after));
    else [this.rows, this.more] = [[], null];
    this.render();
  }

  private turnTo(league: string) {
    this.leagueId = league;
    this.league = this.more = null;
    this.isHidden = false;
  }

  private choose(league: string) {
    this.turnTo(league);
    void this.readAgain();
  }

  /** Further rows. They are asked for anew if the first ones were read again meanwhile, as after a scoring. */
  private async showMore(): Promise<void> {
    await (this.soon ? this.readAgain() : this.reading); // else further rows would follow the ten of before
    const { more, leagueId } = this;
    const last = this.rows!.length;
    if (leagueId) await this.showLeague(more);
    else {
      const answer = await this.insist(() => this.ringside.ask(SEASON_STANDINGS, { season: this.season!, after: more }));
      await this.reading; // else it would take the further rows away
      if (answer && more === this.more) this.show(answer.standings, true);
    }
    const isSame = leagueId === this.leagueId && last === this.rows!.length;
    if (isSame && this.more && more !== this.more) return this.showMore();
    await this.focus(`section:not(:has(form:focus-within)) tr:nth-child(${last + 1})`);
  }

  /** By a code, or the league that is shown. */
  private async join(which: { code: string } | { league: string }) {
    if (this.isSending) return;
    this.isSending = true;
    const answer = await this.mutate(JOIN_LEAGUE, { input: { ...which, idempotencyKey: newKey() } });
    this.isSending = false;
    if (!answer) return;
    this.problem = answer.code ? this.refusal(answer) : '';
    this.needsMember = answer.code === 'NOT_ALLOWED' && this.viewer!.isGuest;
    if (answer.league) {
      if (this.league?.id === answer.league.id) this.league = { ...this.league!, viewerMembership: answer.membership };
      this.closeForm();
      this.say(this.t(answer.membership === 'WAITING' ? 'waiting' : 'joined', { name: answer.league.name }));
      this.emit('league-joined', { league: answer.league.id });
      if (answer.league.season === this.season && answer.membership !== 'WAITING') {
        this.leagueId = answer.league.id;
        await this.reload();
      }
    } else {
      if (!this.isJoining || answer.code === 'NOT_SIGNED_IN') this.say(this.problem); // the form goes then
      void this.focus(this.isJoining ? '#code' : '.primary');
    }
    this.render();
  }

  private type(code: string) {
    this.code = code;
    this.problem = '';
    try {
      sessionStorage[KEPT] = code;
    } catch { /* blocked or full: the code is in the form, and nowhere else */ }
    this.render();
  }

  private closeForm() {
    this.isJoining = false;
    this.type('');
    void this.focus('.plain');
  }

  // ── views ──

  protected view() {
    const { rows, viewer } = this;
    const own = !this.leagueId && viewer?.standing;
    const isListed = own && rows?.some(({ user }) => user.id === viewer.id);
    return (
      <section class="stack" aria-labelledby="title">
        <div class="row between">
          <h2 id="title" dir="auto" part="title">{this.league?.name ?? this.t('standings', { season: this.season ?? '' })}</h2>
          {this.chooser()}
        </div>
        {this.isHidden ? <p class="notice">{this.t('hidden')}</p> : rows?.length === 0 ? <p class="notice">{this.t('empty')}</p> : (
          <table part="standings">
            <thead>
              <tr>
                <th scope="col" aria-label={this.t('rank')}>#</th>
                <th scope="col">{this.t('member')}</th>
                <th scope="col">{this.t('right')}</th>
                <th scope="col">{this.t('pointsHead')}</th>
              </tr>
            </thead>
            <tbody>
              {rows ? rows.map((row) => this.row(row)) : Array.from({ length: 10 }, () => <tr class="wait"><td colspan="4">{'\u00a0'}</td></tr>)}
              {own && !isListed && this.row(own)}
            </tbody>
          </table>
        )}
        {this.more && <button type="button" part="button" onclick={() => this.showMore()}>{this.t('more', { n: this.total })}</button>}
        {this.note()}
        {viewer ? this.joining() : viewer === null && rows && { ...this.signInButton(), key: 'join' }}
      </section>
    );
  }

  private chooser() {
    const leagues = (this.viewer?.leagues.nodes ?? []).filter(({ viewerMembership }) => viewerMembership !== 'WAITING');
    if (!leagues.length) return null;
    return (
      <label class="league">
        <span class="hidden">{this.t('league')}</span>
        <select value={this.leagueId} onchange={(event: any) => this.choose(event.target.value)}>
          <option value="">{this.t('everybody')}</option>
          {this.leagueId && !leagues.some(({ id }) => id === this.leagueId) && <option key="shown" value={this.leagueId}>{this.league?.name}</option>}
          {leagues.map(({ id, name }) => <option key={id} value={id}>{name}</option>)}
        </select>
      </label>
    );
  }

  private row({ rank, user, correct, points }: Row): View {
    const isOwn = user.id === this.viewer?.id;
    return (
      <tr class={isOwn ? 'own' : ''} tabindex="-1" part={isOwn ? 'row own' : 'row'}>
        <td>{this.number(rank)}</td>
        <td><span dir="auto">{user.name}</span>{user.isGuest && <span class="soft"> {this.t('guest')}</span>}{isOwn && <span class="soft"> {this.t('you')}</span>}</td>
        <td>{this.number(correct)}</td>
        <td><strong>{this.number(points)}</strong></td>
      </tr>
    );
  }

  private joining() {
    const { league } = this;
    const isOpen = league && !league.viewerMembership && league.entry !== 'CODE';
    if (!this.isJoining) {
      return [
        this.needsMember ? this.signInButton() : isOpen && <button key="this" type="button" class="primary" part="button" onclick={() => this.join({ league: league.id })}>{this.t('joinThis', { name: league.name })}</button>,
        <button key="join" type="button" class="plain" onclick={() => { this.isJoining = true; this.problem = ''; void this.focus('#code'); }}>{this.t('joinOne')}</button>,
      ];
    }
    return (
      <form class="row" onsubmit={(event: Event) => { event.preventDefault(); void this.join({ code: this.code }); }}>
        <label>
          {this.t('code')}
          <input id="code" value={this.code} required autocomplete="off" aria-invalid={this.problem ? 'true' : null} aria-describedby={this.problem ? 'problem' : null} oninput={(event: any) => this.type(event.target.value)} />
        </label>
        {this.needsMember ? this.signInButton() : <button type="submit" class="primary" part="button">{this.t('join')}</button>}
        <button type="button" part="button" onclick={() => this.closeForm()}>{this.t('cancel')}</button>
        {this.problem && <p class="error" id="problem" role="alert">{this.problem}</p>}
      </form>
    );
  }
}
