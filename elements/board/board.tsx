// <ringside-board board="main">: two contenders, a vote, and the leaderboard while it changes.

import { type View, h } from '../base/dom';
import { Part, picture } from '../base/part';
import {
  BEGIN_BOARD,
  BOARD_CHANGED,
  BOARD_ROWS,
  type BoardChangedData,
  CAST_VOTE,
  DRAW_MATCHUP,
  type DrawMatchupData,
} from '../generated/board';
import type { BoardData } from '../generated/first';
import type { Refused } from '../service';
import type { Ringside } from '../elements';
import css from './board.css?inline';
import english from 'english:board';
import { axis, interval, range } from './strengths';

type Drawn = NonNullable<DrawMatchupData['drawMatchup']>;
type Ballot = Extract<Drawn, { token: string }>;
type Contender = Ballot['left'];
type Row = BoardChangedData['leaderboardChanged'][number];
type Verdict = 'LEFT' | 'RIGHT' | 'TIE' | 'SKIP';

const KEYS: Record<string, Verdict> = { ArrowLeft: 'LEFT', ArrowRight: 'RIGHT', ArrowUp: 'TIE', ArrowDown: 'SKIP' };
const FIRST = 10;
const MOST = 100;
const votes = ({ wins, losses, ties }: Row) => `${[wins, losses, ties]}`;

export default class Board extends Part<BoardData> {
  private declare slug: string;
  private declare board?: BoardData['board'];
  private declare ballot?: Ballot | null;
  private declare refused?: Refused | null;
  private declare chosen?: Verdict | null;
  private rows: Row[] = [];
  /** The votes for each before the last change. */
  private before = new Map<string, string>();
  private pictures = new Map<string, string | null | undefined>();
  private declare pictured?: string | null;
  private declare isLive?: boolean;
  private declare drawing: Promise<unknown>;
  private declare drawnAt: number;

  constructor(host: HTMLElement, ringside: Ringside, texts: any) {
    super(host, ringside, texts, 'board', english, css);
    this.slug = host.getAttribute('board') || 'main';
    this.drawAgain();
  }

  protected arrived({ board }: BoardData) {
    this.board = board;
    if (board) {
      this.learn(board);
      this.watch(FIRST);
      if (board.resultsVisible === 'AFTER_VOTING' && this.ringside.session.visit) void this.reveal();
      if (board.resultsHidden && board.closesAt) this.awaitClosing(board.closesAt);
    }
    this.render();
  }

  protected signedInOrOut() {
    if (this.board?.resultsVisible !== 'ALWAYS') void this.askAgain();
    void this.drawing.then(() => this.drawAgain());
  }

  // ── voting ──

  private drawAgain() {
    this.drawing = this.insist(() => this.drawFirst()).then((answer) => answer && this.drew(answer.drawMatchup));
  }

  /**
   * The draw, with the start of the visit that it needs, which on the service's own origin any mutation starts. Of
   * several elements on a page only one starts a visit.
   */
  private drawFirst(): Promise<DrawMatchupData> {
    const { ask, session, isElsewhere } = this.ringside;
    const starts = !session.starting && (session.lacksVisit || !isElsewhere);
    const drawn = ask(starts && isElsewhere ? BEGIN_BOARD : DRAW_MATCHUP, { board: this.slug });
    const ended = () => (session.starting = null);
    if (starts) session.starting = drawn.then(ended, ended);
    return drawn;
  }

  private drew(drawn: Drawn) {
    this.chosen = this.ballot = this.refused = null;
    this.drawnAt = Date.now();
    if (drawn.token) {
      const { left, right } = (this.ballot = drawn as Ballot);
      this.keepPicture(left);
      this.keepPicture(right);
    } else {
      const { retryAfterSeconds } = (this.refused = drawn as Refused);
      // A board's hours may be changed, so the service is asked again after a minute at most.
      if (retryAfterSeconds != null) this.later(retryAfterSeconds, () => this.refused && this.drawAgain());
      void this.reveal();
    }
    this.render();
  }

  /** Draws again when the board has closed: it then shows its results. */
  private awaitClosing(closesAt: string) {
    const left = this.secondsTo(closesAt);
    if (left > 0) this.later(left, () => this.awaitClosing(closesAt));
    else this.drawAgain();
  }

  private later(seconds: number, act: () => void) {
    setTimeout(() => this.isStopped || act(), Math.min(seconds + 0.5, 60) * 1000);
  }

  private async cast(verdict: Verdict, clicks = 0) {
    const ballot = this.ballot;
    if (!ballot || this.chosen) return;
    // The second of two clicks, of which the first was for the pair before.
    if (clicks > 1 && Date.now() - this.drawnAt < 500) return;
    this.chosen = verdict;
    this.render();
    const answer = await this.insist(() => this.ringside.ask(CAST_VOTE, { token: ballot.token, verdict, board: this.slug }));
    if (!answer) return this.drawAgain();
    const { castVote, drawMatchup } = answer;
    this.drew(drawMatchup);
    if ((castVote as Refused).code) this.say(this.refusal(castVote as Refused));
    else this.voted(verdict, ballot);
  }

  private voted(verdict: Verdict, { left, right }: Ballot) {
    const winner = { LEFT: left, RIGHT: right }[verdict as string];
    const text = this.ballot?.progress.seen === 0 ? 'again' : verdict === 'SKIP' ? 'skipped' : winner ? 'voted' : 'tied';
    this.say(this.t(text, { name: winner?.name!, left: left.name, right: right.name }));
    if (verdict !== 'SKIP' && this.board?.resultsVisible === 'AFTER_VOTING') void this.reveal();
    this.emit('vote', { board: this.slug, verdict, left: left.id, right: right.id, winner: winner?.id ?? null });
  }

  // ── the leaderboard ──

  private keepPicture(contender: { id: string; svg?: string | null; imageUrl?: string | null }) {
    const shown = picture(contender);
    this.pictures.set(contender.id, shown);
    this.pictured ||= shown;
  }

  private learn({ leaderboard: { nodes } }: Pick<NonNullable<BoardData['board']>, 'leaderboard'>) {
    nodes.forEach(({ contender }) => this.keepPicture(contender));
    this.rows = nodes;
  }

  private async read(first: number) {
    return (await this.insist(() => this.ringside.ask(BOARD_ROWS, { board: this.slug, first })))?.board;
  }

  /** Results that are shown to those who voted. */
  private async reveal() {
    const board = this.board?.resultsHidden && (await this.read(FIRST));
    if (!board || board.resultsHidden) return;
    Object.assign(this.board!, board);
    this.learn(board);
    this.ringside.session.dispatchEvent(new Event('renew'));
    this.render();
  }

  private watch(first: number) {
    this.listen(
      BOARD_CHANGED,
      { board: this.slug, first },
      ({ leaderboardChanged }) => this.changed(leaderboardChanged),
      (isLive) => {
        this.isLive = isLive;
        this.render();
      },
    );
  }

  private changed(rows: Row[]) {
    this.before = new Map(this.rows.map((row) => [row.contender.id, votes(row)]));
    this.rows = rows;
    void this.reveal(); // only results that are visible arrive
    // Who has come up has a picture. Not at once with all others who see the change.
    if (rows.some(({ contender }) => !this.pictures.has(contender.id))) this.later(5 * Math.random(), () => this.show(this.rows[FIRST] ? MOST : FIRST));
    this.render();
  }

  /** The first ones, with their pictures. What changed meanwhile is what the stream begins with. */
  private async show(first: number) {
    const board = await this.read(first);
    if (!board) return;
    this.learn(board);
    this.watch(first);
  }

  // ── views ──

  protected view() {
    if (this.board === null) return <p>{this.t('missing', { board: this.slug })}</p>;
    return (
      <div class="both">
        <section class="stack" aria-labelledby="title">
          <h2 id="title" dir="auto" part="title" aria-hidden={!this.board && 'true'}>{this.board?.title ?? '\u00a0'}</h2>
          {this.refused ? this.closed() : this.pair()}
        </section>
        <section class="stack" aria-labelledby="leaderboard">{this.leaderboard()}</section>
      </div>
    );
  }

  private pair() {
    const { seen = 0, remaining = 0 } = this.ballot?.progress ?? {};
    return (
      <div class="stack" onkeydown={this.onKey}>
        <div class="pair">
          {this.corner('LEFT', this.ballot?.left)}
          <span class="versus soft" aria-hidden="true">{this.t('versus')}</span>
          {this.corner('RIGHT', this.ballot?.right)}
        </div>
        <div class="row verdicts">
          {this.verdict('tie', 'ArrowUp')}
          {this.verdict('skip', 'ArrowDown')}
        </div>
        {this.note()}
        <label class="progress soft">
          <span>{this.ballot ? this.t('seen', { seen, total: seen + remaining }) : '\u00a0'}</span>
          <progress part="progress" max={seen + remaining || 1} value={seen}></progress>
        </label>
      </div>
    );
  }

  private verdict(name: string, key: string) {
    const ready = this.ballot && !this.chosen;
    return <button type="button" part="button" aria-disabled={!ready && 'true'} aria-keyshortcuts={key} onclick={(event: MouseEvent) => this.cast(KEYS[key]!, event.detail)}>{this.t(name)}</button>;
  }

  private onKey = (event: KeyboardEvent) => {
    const verdict = KEYS[event.key];
    if (event.repeat && event.key === 'Enter') event.preventDefault(); // a button that is held down votes once, too
    if (!verdict || event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    event.preventDefault();
    void this.cast(verdict);
  };

  private corner(side: 'LEFT' | 'RIGHT', contender?: Contender) {
    const id = `about-${side}`;
    const shown = contender && this.pictures.get(contender.id);
    const ready = contender && !this.chosen;
    return (
      <div class="contender">
        <button
          class={`corner ${this.chosen === side ? 'chosen' : ''}`}
          part="contender"
          type="button"
          aria-disabled={!ready && 'true'}
          aria-label={contender ? this.t('voteFor', { name: contender.name }) : this.t('loading')}
          aria-describedby={contender?.description && id}
          aria-keyshortcuts={side === 'LEFT' ? 'ArrowLeft' : 'ArrowRight'}
          onclick={(event: MouseEvent) => this.cast(side, event.detail)}
        >
          {(!contender || shown) && <span class="picture">{shown && <img key={contender.id} alt="" src={shown} referrerpolicy="no-referrer" />}</span>}
          <span class="name" dir="auto">{contender?.name ?? '\u00a0'}</span>
        </button>
        <p class="soft about" id={id} dir="auto">{contender?.description}</p>
        {contender?.link?.startsWith('https://') ? (
          <a class="more soft" dir="auto" target="_blank" rel="noopener noreferrer nofollow" href={contender.link}>{this.t('more', { name: contender.name })}</a>
        ) : <span></span>}
      </div>
    );
  }

  private closed() {
    const { code, path, retryAfterSeconds } = this.refused!;
    const { electorate, opensAt, closesAt, membersSince } = this.board ?? {};
    const isVisitor = code === 'NOT_SIGNED_IN';
    const [text, time] =
      membersSince && (isVisitor || (code === 'NOT_ALLOWED' && path?.[1] === 'board')) ? ['membersSince', membersSince]
      : isVisitor && electorate === 'MEMBERS' ? ['members']
      : code !== 'LOCKED' ? []
      : retryAfterSeconds == null ? [closesAt && this.secondsTo(closesAt) < 0 ? 'ended' : 'endedNow', closesAt]
      : [opensAt ? 'opens' : 'opensSoon', opensAt];
    return <div class="notice stack"><p>{text ? this.t(text, { when: time! && this.date(time, { dateStyle: 'full', timeStyle: 'short' }) }) : this.refusal(this.refused!)}</p>{isVisitor && <div class="row verdicts">{this.signInButton()}</div>}</div>;
  }

  private leaderboard() {
    const { low, high } = range(this.rows);
    const { resultsHidden, resultsVisible, leaderboard } = this.board ?? {};
    const total = leaderboard?.totalCount!;
    return [
      <div class="row between">
        <h3 id="leaderboard">{this.t('leaderboard')}</h3>
        {!resultsHidden && <span class={`live ${this.isLive ? 'on' : ''}`} part="live">{this.t(this.isLive ? 'live' : 'paused')}</span>}
      </div>,
      resultsHidden ? <p class="notice">{this.t(resultsVisible!)}</p> : this.board && !this.rows[0] ? <p class="soft">{this.t('empty')}</p> : (
        <table part="leaderboard">
          <thead>
            <tr>
              <th scope="col" aria-label={this.t('rank')}>#</th>
              <th scope="col">{this.t('contender')}</th>
              <th scope="col">{this.t('record')}</th>
              <th scope="col">{this.t('score')}</th>
              <th scope="col" class="strength">{this.t('strength')}{this.rows[0] && axis(this, low, high)}</th>
            </tr>
          </thead>
          <tbody>{this.rows[0] ? this.rows.map((row) => this.row(row, low, high)) : Array.from({ length: FIRST }, () => <tr class="wait"><td colspan="5">{'\u00a0'}</td></tr>)}</tbody>
        </table>
      ),
      !resultsHidden && total > FIRST && !this.rows[FIRST] && <button type="button" part="button" onclick={() => this.show(MOST).then(() => this.focus(`tr:nth-child(${FIRST + 1})`))}>{this.t('all', { n: Math.min(total, MOST) })}</button>,
    ];
  }

  private row(row: Row, low: number, high: number): View {
    const { id, name } = row.contender;
    const shown = this.pictures.get(id);
    return (
      <tr class={(this.before.get(id) ?? votes(row)) !== votes(row) && 'moved'} tabindex="-1">
        <td>{this.number(row.rank!)}</td>
        <td class="who"><span>{this.pictured && <span class="thumb">{shown && <img alt="" src={shown} referrerpolicy="no-referrer" />}</span>}<span dir="auto">{name}</span></span></td>
        <td>{this.number(row.wins!)} – {this.number(row.losses!)}</td>
        <td>{this.number(row.score!, { signDisplay: 'exceptZero' })}</td>
        <td class="strength">{interval(this, row.strength, low, high)}</td>
      </tr>
    );
  }
}
