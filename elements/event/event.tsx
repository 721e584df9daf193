// <ringside-event event="next">: a card to pick winners from, until it locks; then its results and points, until the
// next one is made.

import { type View, h } from '../base/dom';
import { Part, newKey } from '../base/part';
import { EVENT_CHANGED, SUBMIT_PREDICTION } from '../generated/event';
import type { EventData, NextEventData } from '../generated/first';
import { LATEST_EVENT, LATEST_EVENTS } from '../generated/event.first';
import type { Ringside } from '../elements';
import css from './event.css?inline';
import english from 'english:event';

type Event = NonNullable<EventData['event']>;
type Match = Event['matches'][number];
type Data = EventData | NextEventData;

interface Choice {
  picks: Record<string, number>;
  guess: string;
  /** What the guess is for. */
  question?: string;
}

export default class EventCard extends Part<Data> {
  private declare event?: Event | null;
  protected declare viewer?: Data['viewer'];
  private choice: Choice = { picks: {}, guess: '' };
  private declare isChanged?: boolean;
  private declare isSending?: boolean;
  /** Whether it was open on this page: what is shown then keeps its place, so that nothing moves. */
  private declare wasOpen?: boolean;
  private declare problem?: { text: string; field: string } | null;
  /** Whether a guest was refused what members may. */
  private declare needsMember?: boolean;

  constructor(host: HTMLElement, ringside: Ringside, texts: any) {
    super(host, ringside, texts, 'event', english, css);
    const clock = setInterval(() => this.tick(), 1000);
    this.until(() => clearInterval(clock));
  }

  protected arrived(data: Data) {
    const event = 'event' in data ? data.event : data.nextEvent;
    if (!event && !('event' in data)) return void this.showLatest(this.last(data));
    if (this.viewer && !data.viewer) this.say(this.t('UNAUTHENTICATED'));
    this.viewer = data.viewer;
    this.needsMember = false;
    if (event?.id !== this.event?.id) this.begin(event);
    this.event = event;
    if (event) this.choose(event);
    this.render();
  }

  /** While none is to come, people look for how the last one goes. */
  private async last(data: NextEventData, after: string | null = null): Promise<Data | null> {
    const season = this.host.getAttribute('season')?.normalize().match(/\S+/g)?.join(' '); // as the service has it
    const found = await this.insist(() => this.ringside.ask(LATEST_EVENTS, { after }));
    if (!found) return null;
    const { nodes, pageInfo } = found.events;
    const last = nodes.find((one) => one.state !== 'CANCELLED' && (!season || one.season === season));
    if (last) return this.insist(() => this.ringside.ask(LATEST_EVENT, { event: last.id }));
    return pageInfo.hasNextPage ? this.last(data, pageInfo.endCursor) : { ...data, event: null };
  }

  /** The next event may be another one than before. */
  private begin(event: Event | null) {
    this.endStream?.();
    this.isChanged = this.wasOpen = false;
    if (event) this.listen(EVENT_CHANGED, { event: event.id }, ({ eventChanged }) => this.changed(eventChanged));
  }

  private changed(event: Event) {
    const { state, matches } = this.event!;
    const results = (card: Match[]) => card.filter(({ result }) => result).length;
    this.event = event;
    if (event.state !== state) this.say(this.t(`became${event.state}`));
    else if (results(event.matches) > results(matches)) this.say(this.t('newResult'));
    this.choose(event);
    this.render();
  }

  protected signedInOrOut() {
    void this.askAgain();
  }

  private tick() {
    if (this.event?.state !== 'UPCOMING') return;
    const left = this.secondsTo(this.event.startsAt);
    // The stream tells of the lock, a moment after it, unless the card has slept over both.
    if (left > -2 || this.find('.open')) this.render();
  }

  // ── picks ──

  private get draft() {
    return `ringside picks ${this.ringside.base} ${this.event!.id}`;
  }

  /** What the reader chose and has not saved stays, but for a guess if another question is asked; else what is saved. */
  private choose(event: Event) {
    const question = event.tieBreak ? `${event.tieBreak.question} ${event.tieBreak.unit}` : '';
    this.load(event, question);
    if (this.choice.question !== question) Object.assign(this.choice, { guess: '', question });
  }

  private load({ viewerPrediction }: Event, question: string) {
    if (this.isChanged && this.isOpen) return;
    this.isChanged = false; // what is kept counts again once the event is open again
    this.choice = {
      picks: Object.fromEntries((viewerPrediction?.picks ?? []).map(({ match, team }) => [match, team])),
      guess: String(viewerPrediction?.guess ?? ''),
      question,
    };
    try {
      const stored = this.isOpen && JSON.parse(localStorage.getItem(this.draft)!);
      if (stored) {
        this.choice = stored;
        this.isChanged = true;
      }
    } catch { /* nothing is stored here */ }
  }

  private change(changed: Partial<Choice>) {
    Object.assign(this.choice, changed);
    this.isChanged = true;
    this.problem = null;
    this.keep(this.choice);
    this.render();
  }

  private keep(choice: Choice | null) {
    try {
      if (choice) localStorage.setItem(this.draft, JSON.stringify(choice));
      else localStorage.removeItem(this.draft);
    } catch { /* blocked or full: the choice is on the page, and nowhere else */ }
  }

  /** What is changed while this is sent is not saved yet, and stays. */
  private async submit() {
    if (this.isSending) return;
    const { id, matches } = this.event!;
    const sent = JSON.stringify(this.choice);
    const picks = this.picked(matches);
    const guess = this.choice.guess ? Number(this.choice.guess) : null;
    this.isSending = true;
    this.render();
    const answer = await this.mutate(SUBMIT_PREDICTION, { input: { event: id, picks, guess, idempotencyKey: newKey() } });
    this.isSending = false;
    if (answer?.prediction) {
      this.isChanged = JSON.stringify(this.choice) !== sent;
      if (!this.isChanged) this.keep(null);
      this.event = { ...this.event!, viewerPrediction: answer.prediction };
      this.choose(this.event);
      this.say(this.t(this.isChanged ? 'notSaved' : 'saved'));
      this.emit('prediction', { event: id, picks, guess });
    } else if (answer) {
      const text = answer.code === 'LOCKED' ? this.t('tooLate') : this.refusal(answer);
      this.needsMember = answer.code === 'NOT_ALLOWED' && this.viewer!.isGuest;
      this.problem = { text, field: answer.path?.[1] ?? '' };
      this.say(text);
    }
    this.render();
  }

  /** What is chosen of the teams that there are: an editor may take off what nobody has saved. */
  private picked(matches: Match[]) {
    return matches.flatMap(({ id: match, teams }) => {
      const team = this.choice.picks[match]!;
      return team < teams.length ? { match, team } : []; // without a choice it is not less
    });
  }

  private get isOpen() {
    return this.event?.state === 'UPCOMING' && this.secondsTo(this.event.startsAt) > 0;
  }

  // ── views ──

  protected view() {
    const { event } = this;
    if (event === null) return <p class="notice">{this.t('none')}</p>;
    if (!event) return <div class="stack">{this.said ? this.note() : <div class="wait"></div>}</div>;
    const { viewerPrediction: prediction } = event;
    this.wasOpen ||= this.isOpen;
    const hasPoints = prediction && event.state !== 'CANCELLED'; // or will have them
    return (
      <form class={`stack ${this.isOpen && 'open'}`} aria-labelledby="title" onsubmit={(submitted: globalThis.Event) => { submitted.preventDefault(); void this.submit(); }}>
        {this.header(event)}
        {(hasPoints || this.wasOpen) && (
          <div class="lead">
            {hasPoints && this.points(prediction)}
            {this.wasOpen && <p class="soft while">{this.t('howTo')}</p>}
          </div>
        )}
        <ol class="card">{event.matches.map((match) => this.match(match, prediction))}</ol>
        {event.tieBreak && this.tieBreak(event.tieBreak)}
        {event.matches.length === 0 && <p class="notice">{this.t('noMatches')}</p>}
        {this.note()}
        {this.wasOpen && (event.matches.length > 0 || event.tieBreak) && this.buttons()}
      </form>
    );
  }

  private header({ name, startsAt, place, state, description, imageUrl }: Event) {
    return (
      <div class="stack head">
        {imageUrl && <img class="poster" alt="" src={imageUrl} referrerpolicy="no-referrer" />}
        <div class="row between">
          <h2 id="title" dir="auto" part="title">{name}</h2>
          <span class={`state ${state}`} part="state">{this.t(this.isOpen ? 'UPCOMING' : state === 'UPCOMING' ? 'LOCKED' : state)}</span>
        </div>
        <p class="soft">
          <time datetime={startsAt}>{this.date(startsAt, { dateStyle: 'full', timeStyle: 'short' })}</time>
          {place && [' · ', <bdi>{place}</bdi>]}
        </p>
        {this.wasOpen && <p class="count while" part="countdown">{this.t('locksIn', { time: this.duration(this.secondsTo(startsAt)) })}</p>}
        {description && <p dir="auto">{description}</p>}
      </div>
    );
  }

  private points({ points, correct, rank }: NonNullable<Event['viewerPrediction']>) {
    return (
      <p class={points == null ? 'points none' : 'points'} part="points">
        <strong>{this.t('points', { n: points ?? 0 })}</strong>
        <span>{this.t('rightPicks', { n: correct ?? 0 })}</span>
        {rank != null && <span>{this.t('place', { rank })}</span>}
      </p>
    );
  }

  private match(match: Match, prediction: Event['viewerPrediction']): View {
    const { id, name, teams, championships, points, preshow, result, pickCounts } = match;
    const all = pickCounts?.reduce((sum, count) => sum + count, 0) ?? 0;
    const pick = prediction?.picks?.find((one) => one.match === id);
    return (
      <li key={id} part="match">
        <fieldset>
          <legend>
            <span dir="auto">{name}</span>
            <span class="soft"> {this.t('points', { n: points })}{preshow && ` · ${this.t('preshow')}`}</span>
          </legend>
          {championships.length > 0 && <p class="soft" dir="auto">{this.t('for', { what: championships.join(', ') })}</p>}
          <div class="teams">
            {teams.map((team, index) => this.team({ id, index, team, result, share: all ? pickCounts![index]! / all : null, pick }))}
          </div>
          {result && result.outcome !== 'WON' ? <p class="soft">{this.t(result.outcome)}</p>
            : pick && result ? <p class={pick.correct ? 'right' : 'soft'}>{this.t(pick.correct ? 'wasRight' : 'wasWrong')}</p>
            : <p></p>}
        </fieldset>
      </li>
    );
  }

  private team({ id, index, team, result, share, pick }: { id: string; index: number; team: Match['teams'][number]; result: Match['result']; share: number | null; pick?: { team: number } }) {
    const members = team.members.join(' & ');
    const won = result?.outcome === 'WON' && result.winner === index;
    const chosen = this.isOpen ? this.choice.picks[id] === index : pick?.team === index;
    const percent = share !== null && this.number(share, { style: 'percent', maximumFractionDigits: 0 });
    return (
      <label key={index} class={`team ${chosen ? 'chosen' : ''}`} part={chosen ? 'team chosen' : 'team'}>
        <input type="radio" name={id} checked={chosen} disabled={!this.isOpen} onchange={() => this.change({ picks: { ...this.choice.picks, [id]: index } })} />
        <span class="who">
          <span dir="auto">{team.name ?? members}</span>
          {team.name && <span class="soft" dir="auto">{members}</span>}
          {team.champion && <span class="soft">{this.t('champion')}</span>}
        </span>
        <span class="end">
          {won && <strong class="right">{this.t('winner')}</strong>}
          {percent && <span class="soft"><span class="hidden">{this.t('share')} </span>{percent}</span>}
        </span>
        {percent && <progress max="1" value={share} aria-hidden="true"></progress>}
      </label>
    );
  }

  private tieBreak({ question, unit, answer }: NonNullable<Event['tieBreak']>) {
    const wrong = this.problem?.field === 'guess' && this.problem.text;
    return (
      <div class="stack">
        <label>
          <span dir="auto">{question}{unit && ` (${unit})`}</span>
          <input type="number" step="any" inputmode="decimal" value={this.choice.guess} disabled={!this.isOpen} aria-invalid={wrong && 'true'} aria-describedby={wrong && 'wrong'} oninput={(event: any) => this.change({ guess: event.target.value })} />
        </label>
        {wrong && <p class="error" id="wrong">{wrong}</p>}
        <p class="right">{answer != null && this.t('answer', { value: this.number(answer) })}</p>
      </div>
    );
  }

  private buttons() {
    const { matches } = this.event!;
    const chosen = this.picked(matches).length;
    const missing = matches.length - chosen;
    const hint = missing && chosen ? this.t('missing', { n: missing }) : this.isChanged ? this.t('notSaved') : this.event!.viewerPrediction ? this.t('isSaved') : '';
    return (
      <div class="row while">
        {this.viewer?.suspension ? <p class="notice">{this.t('suspended')} <span dir="auto">{this.viewer.suspension.reason}</span></p> : !this.viewer || this.needsMember ? this.signInButton() : (
          <button type="submit" class="primary" part="button" aria-disabled={this.isSending && 'true'}>{this.t('savePicks')}</button>
        )}
        <span class="soft">{hint}</span>
      </div>
    );
  }
}
