// Events: making one with its card, its order, results, locking, scoring, and taking the scoring back.

import { h } from '../base/dom';
import { newKey } from '../base/part';
import { ask } from '../service';
import {
  ADD_MATCH, CREATE_EVENT, EVENTS, EVENT_CARD, type EventCardData, type EventsData, LOCK_EVENT, RECORD_RESULT, RECORD_TIE_BREAK, REMOVE_MATCH,
  REORDER_MATCHES, SCORE_EVENT, UNSCORE_EVENT, UPDATE_EVENT, UPDATE_MATCH,
} from '../generated/admin';
import { type Area, type Page, ended, firstClick, local, moment, time } from './area';
import { parseMatch, parseSides, typedSide } from './cards';
import { Draft } from './draft';
import { Pages } from './pages';

type Card = NonNullable<EventCardData['event']>;
type Match = Card['matches'][number];
type Settings = {
  name: string; startsAt: string; description: string; place: string; imageUrl: string; question: string; unit: string; cancelled: boolean;
};

type Texts = { name: string; points: string; teams: string; championships: string; preshow: boolean };
/** The match that is being changed, and the event that it is of. */
type Edited = { event: string; match: Match; draft: Draft<Texts> };
type Lines = Draft<{ matches: string }>;

const OTHERS = ['DRAWN', 'NO_CONTEST', 'CANCELLED'];

const texts = ({ name, points, teams, championships, preshow }: Match): Texts => ({
  name, points: String(points), teams: teams.map(typedSide).join('\n'), championships: championships.join('\n'), preshow,
});

/** What was changed, as an input has it. */
function given({ points, teams, championships, ...others }: Partial<Texts>, match: Match) {
  const changed: Record<string, unknown> = others;
  if (points !== undefined) changed.points = Number(points);
  if (teams !== undefined) changed.teams = parseSides(teams, match.teams);
  if (championships !== undefined) changed.championships = championships.split('\n').map((title) => title.trim()).filter(Boolean);
  return changed;
}

export class Events implements Area {
  private events: Pages<EventsData['events']['nodes'][number]>;
  private card: Card | null = null;
  private wanted = '';
  private fresh: Draft<{ name: string; season: string; startsAt: string; matches: string }>;
  /** What is typed about the events, each by its event. */
  private settings: Record<string, Draft<Settings>> = {};
  private matches: Record<string, Lines> = {};
  private answers: Record<string, Draft<{ answer: string }>> = {};
  private edited: Edited | null = null;
  private dragged: string | null = null;
  private isKeyDown = false;
  private isMoving = false;
  /** The events whose answer is being recorded. */
  private answering = new Set<string>();
  /** The event whose scoring was refused because results are missing. */
  private incomplete: string | null = null;
  /** What keys have chosen, by match, and is not recorded yet: they may only pass by. */
  private picked: Record<string, string> = {};

  constructor(private page: Page) {
    this.events = new Pages(page, 'event', (after) => ask(EVENTS, { after }).then((data) => data.events));
    this.fresh = new Draft(page, 'new-event', { name: '', season: String(new Date().getFullYear()), startsAt: '', matches: '' });
  }

  open() {
    this.picked = {}; // of a select that was left with the area nothing was recorded
    return this.events.open();
  }

  private linesOf(event: string): Lines {
    return (this.matches[event] ??= new Draft(this.page, 'card', { matches: '' }));
  }

  private async create(event: Event) {
    event.preventDefault();
    if (await this.matchComesFirst()) return;
    const { name, season, startsAt, matches } = this.fresh.values;
    const made = await this.fresh.send(CREATE_EVENT, { name, season, startsAt: moment(startsAt) ?? '' });
    if (!made) return;
    this.fresh.clear();
    this.linesOf(made.event.id).values.matches = matches;
    await this.events.open();
    await this.choose(made.event.id);
    if (await this.addAll(made.event.id)) this.page.say(this.page.t('eventMade', { name, n: this.card!.matches.length }));
  }

  private async choose(id: string) {
    if (this.card?.id !== id && (await this.matchComesFirst())) return;
    this.wanted = id;
    await this.read(id);
    if (this.wanted === id) await this.page.focus('#chosen-event');
  }

  /** Also what is typed follows: a change of somebody else is seen before it is overwritten. */
  private async read(id: string) {
    const data = await this.page.insist(() => ask(EVENT_CARD, { event: id }));
    if (!data?.event || this.wanted !== id) return;
    const { name, startsAt, description, place, imageUrl, state, tieBreak } = data.event;
    const details = { description: description ?? '', place: place ?? '', imageUrl: imageUrl ?? '' };
    const values = { name, startsAt: local(startsAt), ...details, question: tieBreak?.question ?? '', unit: tieBreak?.unit ?? '', cancelled: state === 'CANCELLED' };
    const answer = { answer: String(tieBreak?.answer ?? '') };
    (this.settings[id] ??= new Draft<Settings>(this.page, 'event', values)).follow(values);
    (this.answers[id] ??= new Draft(this.page, 'tie-break', answer)).follow(answer);
    this.card = data.event;
    this.followMatch(data.event);
    // The list says of the event what its card says.
    this.events.nodes = this.events.nodes?.map((one) => (one.id === id ? { ...one, name, state } : one)) ?? null;
  }

  private followMatch({ matches }: Card) {
    const { edited } = this;
    const match = matches.find(({ id }) => id === edited?.match.id);
    if (!match) return;
    edited!.match = match;
    edited!.draft.follow(texts(match));
  }

  private async save(event: Event) {
    event.preventDefault();
    const card = this.card!;
    const settings = this.settings[card.id]!;
    const { name, startsAt, question, unit, cancelled, ...details } = settings.values;
    const changed: Record<string, unknown> = { name, cancelled };
    // Not again what is stored: an address whose host is no longer allowed would be refused.
    for (const [each, text] of Object.entries(details)) if (text !== (card[each as keyof typeof details] ?? '')) changed[each] = text || null;
    if (startsAt !== local(card.startsAt)) changed.startsAt = moment(startsAt);
    if (question !== (card.tieBreak?.question ?? '') || unit !== (card.tieBreak?.unit ?? '')) changed.tieBreak = question ? { question, unit: unit || null } : null;
    const answer = await settings.send(UPDATE_EVENT, { event: card.id, ...changed, revision: card.revision }, () => this.read(card.id));
    if (!answer) return;
    await this.events.open();
    this.page.say(this.page.t('saved'));
  }

  /** Pressed again while that takes its time, it would take its own answer for somebody else's. */
  private async answerTieBreak(event: string) {
    if (this.answering.has(event)) return;
    this.answering.add(event);
    await this.recordAnswer(event).finally(() => this.answering.delete(event));
  }

  /** The service would record it whatever is recorded by now: what another editor has recorded meanwhile is shown first. */
  private async recordAnswer(event: string) {
    const { card } = this;
    await this.read(event);
    if (this.card === card || this.card?.id !== event) return;
    if (this.card.tieBreak?.answer !== card!.tieBreak?.answer) return this.page.say(this.page.t('changedMeanwhile'));
    const draft = this.answers[event]!;
    if (!(await draft.send(RECORD_TIE_BREAK, { event, answer: Number(draft.values.answer) }))) return;
    await this.read(event);
    this.page.say(this.page.t(this.recorded));
  }

  /** What is recorded after the scoring changes no points by itself. */
  private get recorded() {
    return this.card!.state === 'SCORED' ? 'scoreAgain' : 'saved';
  }

  // ── the card ──

  /** Adds the matches that were typed, a line each. A line that is refused stays, with those after it. */
  private addAll(event: string) {
    const typed = this.linesOf(event);
    return typed.once(() => this.addLines(event, typed));
  }

  /** All of them to the event that was shown, whichever is looked at meanwhile. */
  private async addLines(event: string, typed: Lines): Promise<boolean> {
    const lines = typed.values.matches.split('\n').map((line) => line.trim()).filter(Boolean);
    if (!lines.length) return true;
    const key = newKey();
    for (const [place, line] of lines.entries()) {
      const answer = await this.page.mutate(ADD_MATCH, { input: { event, ...parseMatch(line), idempotencyKey: `${key}${place}` } });
      if (!answer || answer.code) {
        this.take(lines.slice(0, place), typed);
        await this.read(this.card!.id);
        if (answer) await typed.refuse({ ...answer, message: `${line}: ${answer.message}`, path: ['matches'] });
        return false;
      }
    }
    this.take(lines, typed);
    await this.read(this.card!.id);
    this.page.render();
    return true;
  }

  /** Takes lines that were added out of what is typed. What was typed meanwhile stays. */
  private take(lines: string[], { values }: Lines) {
    const left = [...lines];
    const stays = (line: string) => line.trim() && (!left.includes(line.trim()) || !left.splice(left.indexOf(line.trim()), 1));
    values.matches = values.matches.split('\n').filter(stays).join('\n');
    this.page.render();
  }

  private async act(document: any, input: object, said?: string): Promise<any> {
    const answer = await this.page.mutate(document, { input: { ...input, idempotencyKey: newKey() } });
    if (!answer) return null;
    if (answer.code) this.page.say(this.page.refusal(answer));
    this.incomplete = answer.path?.at(-1) === 'confirmMissing' ? (input as { event: string }).event : null;
    const isDone = !answer.code && (!answer.job || (await ended(this.page, answer.job.id)));
    await this.read(this.card!.id);
    if (isDone && said) this.page.say(this.page.t(said));
    this.page.render();
    return isDone ? answer : null;
  }

  /** Pressed again while that takes its time, it would take its own order for somebody else's. */
  private async move(match: Match, to: number) {
    if (this.isMoving) return;
    const { id, matches, revision } = this.card!;
    const before = matches.map((one) => one.id);
    const ids = before.filter((one) => one !== match.id);
    ids.splice(to, 0, match.id);
    this.isMoving = true;
    const isMoved = await this.act(REORDER_MATCHES, { event: id, matches: ids, revision }).finally(() => { this.isMoving = false; });
    if (!isMoved) return;
    // The service keeps the pre-show first, wherever a match was put.
    const place = this.card!.matches.findIndex((one) => one.id === match.id);
    if (place < 0) return;
    this.page.say(this.page.t('moved', { name: match.name, n: place + 1 }));
    await this.page.focus(`#${to > before.indexOf(match.id) ? 'down' : 'match'}-${place}`);
  }

  private async edit(match: Match) {
    if (await this.matchComesFirst()) return;
    this.edited = { event: this.card!.id, match, draft: new Draft<Texts>(this.page, 'match-edit', texts(match)) };
    await this.page.focus('#match-edit-name');
  }

  private async matchComesFirst() {
    const { edited } = this;
    return edited?.draft.comesFirst(edited.match.name, 'name');
  }

  private async close() {
    const { id } = this.edited!.match;
    this.edited = null;
    await this.page.focus(`#edit-match-${this.card!.matches.findIndex((match) => match.id === id)}`);
  }

  private async change(event: Event, edited: Edited) {
    event.preventDefault();
    const { match, draft } = edited;
    const card = this.card!.id;
    const changed = given(draft.changed, match);
    const input = { match: match.id, ...changed, revision: match.revision };
    if (!(await draft.send(UPDATE_MATCH, input, () => this.read(card)))) return this.page.focus('#match-gone'); // if it is
    this.page.say(this.page.t('saved'));
    if (this.edited === edited) await this.close();
  }

  private async remove(match: Match, place: number) {
    if (!(await this.act(REMOVE_MATCH, { match: match.id }, 'saved'))) return;
    await this.page.focus(this.page.find(`#match-${place}`) ? `#match-${place}` : '#chosen-event');
  }

  private record(match: Match, value: string) {
    if (!value) return; // what was picked is no choice any more
    const winner = Number(value);
    const result = Number.isNaN(winner) ? { outcome: value } : { outcome: 'WON', winner };
    void this.act(RECORD_RESULT, { match: match.id, ...result, revision: match.revision }, this.recorded);
  }

  // ── views ──

  view() {
    const { page } = this;
    return (
      <div class="stack">
        <div class="row between">
          <h2>{page.t('events')}</h2>
          <button type="button" onclick={() => page.focus('#new-event-name')}>{page.t('newEvent')}</button>
        </div>
        {!this.events.nodes ? this.events.waiting() : (
          <ul class="row">
            {this.events.nodes.map(({ id, name, state }, place) => (
              <li key={id}><button id={`event-${place}`} type="button" aria-pressed={String(id === this.card?.id)} onclick={() => this.choose(id)}>
                <span dir="auto">{name}</span> · {page.t(state)}
              </button></li>
            ))}
          </ul>
        )}
        {this.events.button()}
        {this.card && this.chosen(this.card)}
        {this.newEvent()}
      </div>
    );
  }

  private newEvent() {
    const { page } = this;
    return (
      <form class="stack" onsubmit={(event: Event) => this.create(event)}>
        <h3>{page.t('newEvent')}</h3>
        <div class="row end">
          {this.fresh.field('name', page.t('name'), { required: true })}
          {this.fresh.field('season', page.t('season'), { required: true })}
          {this.fresh.field('startsAt', page.t('startsAt'), { type: 'datetime-local', required: true })}
        </div>
        {this.fresh.field('matches', page.t('matches'), { tag: 'textarea', rows: 6, placeholder: 'Ada v Bo\nMain: Cy & Dee v Eve | 2', hint: page.t('matchesHint') })}
        <div class="row"><button type="submit" class="primary">{page.t('create')}</button></div>
      </form>
    );
  }

  private chosen(card: Card) {
    const { page } = this;
    const draft = this.settings[card.id]!;
    return (
      <section class="stack" key={card.id}>
        <h2 id="chosen-event" tabindex="-1" dir="auto">{card.name}</h2>
        <div class="row">
          <span class="soft">{page.t(card.state)} · {time(page, card.startsAt)}</span>
          {card.state === 'UPCOMING' && <button type="button" onclick={firstClick(() => this.act(LOCK_EVENT, { event: card.id }, 'lockedNow'))}>{page.t('lock')}</button>}
          {['LOCKED', 'SCORED'].includes(card.state) && <button type="button" class="primary" onclick={firstClick(() => this.act(SCORE_EVENT, { event: card.id }, 'scoredNow'))}>{page.t('scoreEvent')}</button>}
          {this.incomplete === card.id && <button type="button" onclick={firstClick(() => this.act(SCORE_EVENT, { event: card.id, confirmMissing: true }, 'scoredNow'))}>{page.t('scoreWithout')}</button>}
          {card.state === 'SCORED' && <button type="button" onclick={firstClick(() => this.act(UNSCORE_EVENT, { event: card.id }, 'unscoredNow'))}>{page.t('unscore')}</button>}
        </div>
        {this.goneMatch(card)}
        {this.matchesTable(card)}
        {card.tieBreak && card.state !== 'UPCOMING' && this.answerForm(card)}
        <div class="two even">
          <form class="stack" onsubmit={(event: Event) => { event.preventDefault(); void this.addAll(card.id); }}>
            {this.linesOf(card.id).field('matches', page.t('moreMatches'), { tag: 'textarea', rows: 4, hint: page.t('matchesHint') })}
            <div class="row"><button type="submit">{page.t('add')}</button></div>
          </form>
          <form class="stack" onsubmit={(event: Event) => this.save(event)}>
            {draft.field('name', page.t('name'), { required: true })}
            {draft.field('startsAt', page.t('startsAt'), { type: 'datetime-local', required: true })}
            {draft.field('description', page.t('description'), { tag: 'textarea', rows: 2, dir: 'auto' })}
            {draft.field('place', page.t('place'))}
            {draft.field('imageUrl', page.t('imageUrl'), { type: 'url' })}
            <div class="row end">{draft.field('question', page.t('tieBreak'), { hint: page.t('tieBreakHint') })}{draft.field('unit', page.t('unit'))}</div>
            {draft.field('cancelled', page.t('cancelEvent'), { type: 'checkbox' })}
            <div class="row"><button type="submit" class="primary">{page.t('save')}</button></div>
          </form>
        </div>
      </section>
    );
  }

  private answerForm({ id, tieBreak }: Card) {
    const { page } = this;
    return (
      <form class="row end" onsubmit={(event: Event) => { event.preventDefault(); void this.answerTieBreak(id); }}>
        {this.answers[id]!.field('answer', page.t('tieBreakAnswer', { question: tieBreak!.question }), { type: 'number', step: 'any', required: true })}
        <button type="submit">{page.t('recordAnswer')}</button>
      </form>
    );
  }

  /** In place of the form of a match that another editor has removed. */
  private goneMatch({ id, matches }: Card) {
    const { edited } = this;
    if (edited?.event !== id || matches.some((match) => match.id === edited.match.id)) return null;
    return <p id="match-gone" class="error" role="alert" tabindex="-1" dir="auto">{this.page.t('matchGone', { name: edited.match.name })}</p>;
  }

  private matchesTable({ matches, state }: Card) {
    const { page, edited } = this;
    if (!matches.length) return <p>{page.t('noMatches')}</p>;
    return (
      <div class="stack">
        <ol class="stack">
          {matches.map((match, place) => (edited?.match.id === match.id ? this.editForm(edited) : this.row(match, place, state === 'UPCOMING')))}
        </ol>
        {state === 'UPCOMING' && <p id="removing" class="soft">{page.t('removeHint')}</p>}
      </div>
    );
  }

  private row(match: Match, place: number, isOpen: boolean) {
    const { page } = this;
    const named = () => <span class="hidden"> {match.name}</span>;
    /** Past its neighbour there: not over an end of the card, nor between the pre-show and what follows it. */
    const passing = (to: number) => {
      const can = this.card!.matches[to]?.preshow === match.preshow;
      return { 'aria-disabled': !can && 'true', onclick: () => can && this.move(match, to) };
    };
    return (
      <li key={match.id} class="match" draggable="true" ondragstart={() => { this.dragged = match.id; }}
        ondragover={(event: Event) => event.preventDefault()}
        ondrop={() => { const one = this.card!.matches.find(({ id }) => id === this.dragged); if (one) void this.move(one, place); }}>
        <p dir="auto"><strong>{match.name}</strong> · {page.t('pointsOf', { n: match.points })}</p>
        <div class="row end">
          {this.result(match)}
          {isOpen && <button id={`edit-match-${place}`} type="button" onclick={() => this.edit(match)}>{page.t('edit')}{named()}</button>}
          <button id={`match-${place}`} type="button" {...passing(place - 1)}>{page.t('up')}{named()}</button>
          <button id={`down-${place}`} type="button" {...passing(place + 1)}>{page.t('down')}{named()}</button>
          <button type="button" class="plain" aria-describedby={isOpen && 'removing'} onclick={firstClick(() => this.remove(match, place))}>{page.t('remove')}{named()}</button>
        </div>
      </li>
    );
  }

  private editForm(edited: Edited) {
    const { page } = this;
    const { match, draft } = edited;
    return (
      <li key={`edit ${match.id}`} class="match">
        <form class="stack" onsubmit={(event: Event) => this.change(event, edited)}>
          {draft.field('name', page.t('name'), { required: true, dir: 'auto' })}
          {draft.field('points', page.t('points'), { type: 'number', min: 1, max: 1000, required: true })}
          {draft.field('teams', page.t('sides'), { tag: 'textarea', rows: 2, required: true, dir: 'auto', hint: page.t('sidesHint') })}
          {draft.field('championships', page.t('titles'), { tag: 'textarea', rows: 1, dir: 'auto' })}
          {draft.field('preshow', page.t('preshow'), { type: 'checkbox' })}
          <div class="row">
            <button type="submit" class="primary">{page.t('save')}</button>
            <button type="button" onclick={() => this.close()}>{page.t('cancel')}</button>
          </div>
        </form>
      </li>
    );
  }

  private result(match: Match) {
    const { page } = this;
    const { result } = match;
    const value = !result ? 'none' : result.outcome === 'WON' ? String(result.winner) : result.outcome;
    const choices = [...(result ? [] : [['none', page.t('noResult')]]), ...match.teams.map((team, place) => [String(place), page.t('won', { name: team.name ?? team.members.join(' & ') })]), ...OTHERS.map((one) => [one, page.t(one)])];
    const take = ({ currentTarget }: any) => {
      delete this.picked[match.id];
      if (currentTarget.value !== value) this.record(match, currentTarget.value);
    };
    const takePicked = (event: any) => {
      if (!(match.id in this.picked)) return;
      event.preventDefault(); // Enter also opens the list in some browsers
      take(event);
    };
    const recording = {
      onkeydown: (event: any) => {
        this.isKeyDown = true;
        if (event.key === 'Escape') event.currentTarget.value = value;
        if (['Enter', 'Escape'].includes(event.key)) takePicked(event);
      },
      onkeyup: () => { this.isKeyDown = false; },
      // Nothing is kept of what is recorded already: "none yet" is no choice any more once there is a result.
      onchange: (event: any) => {
        if (this.isKeyDown && event.currentTarget.value !== value) this.picked[match.id] = event.currentTarget.value;
        else take(event);
      },
      onblur: (event: any) => { this.isKeyDown = false; takePicked(event); },
    };
    return (
      <label>{page.t('resultOf', { name: match.name })}
        <select value={this.picked[match.id] ?? value} {...recording}>
          {choices.map(([one, text]) => <option value={one}>{text}</option>)}
        </select>
      </label>
    );
  }
}
