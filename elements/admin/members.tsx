// Members: finding them; what they may do; suspending, taking back, exporting and erasing.

import { h } from '../base/dom';
import { newKey } from '../base/part';
import { ask } from '../service';
import {
  ERASE_MEMBER, EXPORT_MEMBER, MEMBERS, type MembersData, ONE_MEMBER, REINSTATE_MEMBER, SET_ROLES, SUSPEND_MEMBER, TAKE_BACK,
} from '../generated/admin';
import { type Area, Hidden, type Page, ended, field, isNamed, moment, time } from './area';
import { Draft } from './draft';
import { Pages } from './pages';

type Member = MembersData['members']['nodes'][number];

const ROLES = ['moderator', 'editor', 'admin'];
const PARTS = ['VOTES', 'PREDICTIONS', 'COMMENTS', 'QUIZZES', 'SENTENCES'];

type Ticked = Record<string, boolean>;
const ticked = (names: string[], isTicked: (name: string) => boolean): Ticked => Object.fromEntries(names.map((name) => [name, isTicked(name)]));
const rolesOf = ({ roles }: Member) => ticked(ROLES, (role) => Boolean(roles?.includes(role)));
/** Those of a form's boxes that are ticked. */
const chosenOf = ({ values }: Draft<Ticked>) => Object.keys(values).filter((name) => values[name]);

export class Members implements Area {
  private found: Pages<Member>;
  private chosen: Member | null = null;
  /** The addresses of files, by the ids of the members whom they are about. */
  private files: Record<string, string> = {};
  private search = '';
  /** What is typed about suspending them, by member. */
  private suspensions: Record<string, Draft<{ reason: string; until: string }>> = {};
  private roles!: Draft<Ticked>;
  private parts!: Draft<Ticked>;

  constructor(private page: Page, private isAdmin: boolean) {
    this.found = new Pages(page, 'member', (after) => ask(MEMBERS, { search: this.search || null, after }).then((data) => data.members));
  }

  /** All members, with an empty field for a name, also where it is shown already. */
  open() {
    this.search = '';
    const input = this.page.find<HTMLInputElement>('[type=search]');
    if (input) input.value = '';
    return this.found.open();
  }

  private async look(event: Event) {
    event.preventDefault();
    this.search = field(event, 'search').trim();
    if (!(await this.found.open())) return;
    const n = this.found.nodes!.length;
    this.page.say(this.page.t('found', { n: this.found.isWhole ? n : `${this.page.number(n)}+` }));
  }

  private choose(member: Member) {
    this.chosen = member;
    this.suspensions[member.id] ??= new Draft(this.page, 'suspend', { reason: '', until: '' });
    this.roles = new Draft(this.page, 'role', rolesOf(member));
    this.parts = new Draft(this.page, 'part', ticked(PARTS, () => true));
    void this.page.focus('#member');
  }

  /** Carries out a mutation about the chosen member, and shows them as they are then. */
  private async act(document: any, more: object, said: string) {
    const member = this.chosen!;
    const answer = await this.page.mutate(document, { input: { user: member.id, ...more, idempotencyKey: newKey() } });
    if (answer?.code) return this.page.say(this.page.refusal(answer));
    if (answer) await this.done(member, answer, said);
  }

  /** The service would set them whatever they are by now: what another admin has changed meanwhile is shown first. */
  private async setRoles(event: Event) {
    event.preventDefault();
    const { id } = this.chosen!;
    const data = await this.page.insist(async () => {
      const found = await ask(ONE_MEMBER, { user: id });
      if (found.user && !found.user.roles) throw new Hidden('roleGone');
      return found;
    });
    if (!data || this.chosen?.id !== id) return;
    const { user: now } = data;
    const isShown = !now || ROLES.every((role) => rolesOf(now)[role] === rolesOf(this.chosen!)[role]);
    if (isShown) return this.act(SET_ROLES, { roles: chosenOf(this.roles) }, 'rolesSet');
    this.show(now);
    this.page.say(this.page.t('rolesMeanwhile'));
  }

  private async suspend(event: Event) {
    event.preventDefault();
    const member = this.chosen!;
    const suspension = this.suspensions[member.id]!;
    const { reason, until } = suspension.values;
    const answer = await suspension.send(SUSPEND_MEMBER, { user: member.id, reason, until: moment(until) });
    if (!answer) return;
    suspension.clear();
    await this.done(member, answer, 'nowSuspended');
  }

  /** What takes long is a job, which the page waits for; somebody else may be chosen meanwhile. */
  private async done({ id, name }: Member, answer: any, said: string) {
    if (answer.job && !(await ended(this.page, answer.job.id))) return;
    if (answer.user) this.show(answer.user);
    // From where this page is, whatever the service takes for its public address.
    if (answer.url) this.files[id] = answer.url.replace(/^https?:\/\/[^/]+/, '');
    if (said === 'erased') await this.leave(id);
    this.page.say(this.page.t(said, { name }));
  }

  private show(member: Member) {
    if (this.chosen?.id === member.id) {
      this.chosen = member;
      this.roles.follow(rolesOf(member));
    }
    this.found.nodes = this.found.nodes!.map((one) => (one.id === member.id ? member : one));
  }

  /** Nothing is shown of whoever was erased. */
  private async leave(id: string) {
    this.found.nodes = this.found.nodes!.filter((one) => one.id !== id);
    if (this.chosen?.id !== id) return;
    this.chosen = null;
    await this.page.focus('[type=search]');
  }

  private erase(event: Event) {
    event.preventDefault();
    if (!isNamed(event, this.chosen!.name)) return this.page.say(this.page.t('typeName'));
    void this.act(ERASE_MEMBER, { contributions: field(event, 'keep') ? 'ANONYMISE' : 'REMOVE' }, 'erased');
  }

  view() {
    const { page } = this;
    return (
      <div class="two">
        <section class="stack">
          <h2>{page.t('members')}</h2>
          <form class="row end" role="search" onsubmit={(event: Event) => this.look(event)}>
            <label>{page.t('search')}<input name="search" type="search" /></label>
            <button type="submit">{page.t('find')}</button>
          </form>
          {!this.found.nodes ? this.found.waiting() : (
            <ul class="stack">
              {this.found.nodes.map((member, place) => (
                <li key={member.id}><button id={`member-${place}`} type="button" aria-pressed={String(member.id === this.chosen?.id)} onclick={() => this.choose(member)}>
                  <span dir="auto">{member.name}</span>{member.isGuest && ` · ${page.t('guest')}`}{member.suspension && ` · ${page.t('suspended')}`}
                </button></li>
              ))}
            </ul>
          )}
          {this.found.button()}
        </section>
        {this.chosen ? this.detail(this.chosen) : <section />}
      </div>
    );
  }

  private suspended({ reason, until }: NonNullable<Member['suspension']>) {
    const { page } = this;
    return until ? page.t('suspendedUntil', { date: time(page, until), reason }) : page.t('suspendedFor', { reason });
  }

  private detail(member: Member) {
    const { page } = this;
    const suspension = this.suspensions[member.id]!;
    const takeBack = (event: Event) => {
      event.preventDefault();
      void this.act(TAKE_BACK, { parts: chosenOf(this.parts) }, 'tookBack');
    };
    return (
      <section class="stack beside" key={member.id}>
        <h2 id="member" tabindex="-1" dir="auto">{member.name}</h2>
        <p class="soft">{page.t('since', { date: page.date(member.joinedAt) })} {member.email}</p>
        {member.identities?.length ? <p class="soft">{member.identities.map(({ method, label }) => `${method}: ${label}`).join(', ')}</p> : null}
        {this.isAdmin && !member.isGuest && (
          <form class="stack" onsubmit={(event: Event) => this.setRoles(event)}>
            <fieldset class="row"><legend>{page.t('roles')}</legend>
              {ROLES.map((role) => this.roles.field(role, page.t(role), { type: 'checkbox' }))}
            </fieldset>
            <button type="submit">{page.t('setRoles')}</button>
          </form>
        )}
        {member.suspension ? (
          <div class="stack">
            <p class="error">{this.suspended(member.suspension)}</p>
            <button type="button" onclick={() => this.act(REINSTATE_MEMBER, {}, 'reinstated')}>{page.t('reinstate')}</button>
          </div>
        ) : (
          <form class="stack" onsubmit={(event: Event) => this.suspend(event)}>
            {suspension.field('reason', page.t('reason'), { required: true })}
            {suspension.field('until', page.t('until'), { type: 'datetime-local' })}
            <button type="submit">{page.t('suspend')}</button>
          </form>
        )}
        <form class="stack" onsubmit={takeBack}>
          <fieldset class="row"><legend>{page.t('takeBack')}</legend>
            {PARTS.map((part) => this.parts.field(part, page.t(part), { type: 'checkbox' }))}
          </fieldset>
          <button type="submit">{page.t('takeBackNow')}</button>
        </form>
        {this.isAdmin && (
          <div class="stack">
            <button type="button" onclick={() => this.act(EXPORT_MEMBER, {}, 'exported')}>{page.t('export')}</button>
            {this.files[member.id] && <p><a href={this.files[member.id]} download>{page.t('file')}</a></p>}
            <form class="stack" onsubmit={(event: Event) => this.erase(event)}>
              <label>{page.t('eraseName')}<input name="name" autocomplete="off" /></label>
              <label class="pick"><input type="checkbox" name="keep" value="yes" />{page.t('keep')}</label>
              <button type="submit">{page.t('erase')}</button>
            </form>
          </div>
        )}
      </section>
    );
  }
}
