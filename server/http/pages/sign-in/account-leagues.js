// The member's leagues, in the account: creating and leaving them, and what captains do. Loaded once it is opened.

import {
  Refused, ask, asked, button, by, change, goBack, isolated, make, mark, option, reason, say, show, signedIn, tell,
  working,
} from './sign-in.js';

const { Seasons, OwnLeagues, LeagueMembers, CreateLeague, RotateLeagueCode } = asked.documents;
const { AdmitToLeague, RemoveFromLeague, LeaveLeague, DeleteLeague } = asked.documents;
const MEANWHILE = { NOT_FOUND: 'leagueChanged', NOT_ALLOWED: 'leagueChanged', CONFLICT: 'leagueChanged' };

let confirmed = null; // what is done with a league once its button is pressed
let sent = {}; // the league that was asked for last, and its key: after a lost answer a repeat makes no second one

// Guests and who is suspended have none; nor does a site without a season.
export async function fillLeagues() {
  if (signedIn.isGuest || signedIn.suspension) return;
  const [seasons, viewer] = await Promise.all([ask(Seasons), ask(OwnLeagues)]);
  if (!seasons.nodes.length || viewer?.id !== signedIn?.id) return;
  const [latest] = seasons.nodes;
  by('season').replaceChildren(...seasons.nodes.map(({ name }) => option(name, name, latest.name)));
  by('own-leagues').replaceChildren(...viewer.leagues.nodes.map(row));
  by('leagues').hidden = false;
}

function row(league) {
  const item = make('li', { className: 'league' });
  if (league.viewerMembership === 'CAPTAIN') item.append(new CaptainsLeague(league, item).details);
  else item.append(named(league), leaving(league, item));
  return item;
}

function named({ name, season, viewerMembership }) {
  const text = make('span', { textContent: `${isolated(name)} · ${isolated(season)}` });
  if (viewerMembership === 'WAITING') text.append(` · ${say('waiting')}`);
  return text;
}

// ── leaving and deleting ──

const leaving = (league, item) => button('leave', isolated(league.name), async () => confirmFirst('leave', league, item));

function confirmFirst(what, league, item) {
  const name = isolated(league.name);
  by('end-hint').textContent = say(`${what}Hint`);
  by('end-now').textContent = say(what);
  confirmed = async () => {
    await change(what === 'leave' ? LeaveLeague : DeleteLeague, { league: league.id }, MEANWHILE).catch(error => {
      throw error.path?.includes('successor') ? new Refused('lastCaptain') : error;
    });
    item.remove();
    back();
    tell(say(`${what}Done`, { name }));
  };
  show('ending', say(`${what}Title`, { name }));
}

function back() {
  goBack();
  by('account').open = true;
  by('leagues-title').focus();
}

by('end-league').addEventListener('submit', event => {
  event.preventDefault();
  working(confirmed);
});
by('stay').addEventListener('click', back);

// ── creating ──

by('new-league').addEventListener('submit', event => {
  event.preventDefault();
  const input = by('league-name'), name = input.value.trim(), season = by('season').value, entry = by('entry').value;
  if (!name) return mark(input, say('badName'));
  working(async () => {
    const told = { CONFLICT: 'tooManyLeagues', INVALID_INPUT: 'badName' };
    const text = JSON.stringify([signedIn.id, name, season, entry]);
    if (sent.text !== text) sent = { text, key: crypto.getRandomValues(new Uint32Array(4)).join('-') };
    const { league } = await change(CreateLeague, { name, season, entry, idempotencyKey: sent.key }, told);
    sent = {};
    const made = row(league), details = made.querySelector('details');
    by('own-leagues').prepend(made);
    input.value = '';
    details.open = true;
    details.querySelector('summary').focus();
    tell(say('leagueCreated', { name: isolated(league.name) }));
  }, input);
});

// ── captains ──

// Its members are read once it is opened, a hundred at a time.
class CaptainsLeague {
  places = [];
  after = null;
  reading = null;

  constructor(league, item) {
    this.league = league;
    this.waiting = make('ul');
    this.members = make('ul');
    this.count = make('summary');
    this.nobody = make('p', { className: 'hint', textContent: say('nobodyWaits') });
    this.more = button('more', isolated(league.name), () => this.readMore());
    this.details = make('details');
    const summary = make('summary'), disclosed = make('details'), asking = make('section');
    summary.append(named(league));
    this.asking = make('h4', { tabIndex: -1, textContent: say('whoWaits') });
    asking.append(this.asking, this.nobody, this.waiting);
    asking.hidden = league.entry !== 'APPROVAL';
    disclosed.append(this.count, this.members);
    const name = isolated(league.name), remove = () => confirmFirst('deleteLeague', league, item);
    this.details.append(summary, this.entering(), asking, disclosed, this.more, leaving(league, item),
      button('deleteLeague', name, remove, 'quiet danger'));
    this.details.addEventListener('toggle', () => this.details.open && this.open());
    this.fill();
  }

  // The code, or the id by which a page of the site names a league that needs none.
  entering() {
    const { league } = this, isCoded = league.entry === 'CODE', name = isolated(league.name);
    const shown = make('code', { className: 'league-code', dir: 'ltr', textContent: league.code ?? league.id });
    const [title, hint] = isCoded ? [say('leagueCode'), say('giveCode')] : [say('leagueId'), say('giveId')];
    const part = make('section');
    part.append(make('h4', { textContent: title }), shown, make('p', { className: 'hint', textContent: hint }));
    part.append(button('copy', name, () => copy(shown)));
    if (isCoded) part.append(button('newCode', name, () => this.rotate(shown)));
    return part;
  }

  async rotate(shown) {
    const { league } = await change(RotateLeagueCode, { league: this.league.id }, MEANWHILE);
    shown.textContent = league.code;
    tell(say('newCodeMade'));
  }

  // What is said of what was done before stays.
  open() {
    this.reading ??= this.read().catch(error => {
      this.reading = null;
      tell(reason(error));
    });
  }

  async read() {
    const league = await ask(LeagueMembers, { league: this.league.id, after: this.after });
    if (!league?.members) throw new Refused('leagueChanged');
    const { nodes, pageInfo } = league.members;
    this.places.push(...nodes);
    this.after = pageInfo.hasNextPage ? pageInfo.endCursor : null;
    this.league.memberCount = league.memberCount;
    this.fill();
  }

  async readMore() {
    await this.read();
    if (this.more.hidden) this.count.focus();
  }

  fill() {
    const count = new Intl.NumberFormat(document.documentElement.lang).format(this.league.memberCount);
    const isWaiting = ({ membership }) => membership === 'WAITING';
    const waiting = this.places.filter(isWaiting), members = this.places.filter(each => !isWaiting(each));
    this.count.textContent = say('members', { count });
    this.waiting.replaceChildren(...waiting.map(place => this.place(place)));
    this.members.replaceChildren(...members.map(place => this.place(place)));
    this.nobody.hidden = Boolean(this.after) || !this.places.length || waiting.length > 0;
    this.more.hidden = !this.after;
  }

  place(place) {
    const label = isolated(place.user.name), item = make('li'), text = make('span', { textContent: label });
    const { membership } = place;
    item.append(text);
    if (membership === 'CAPTAIN') text.append(` · ${say('captain')}`);
    else if (membership === 'WAITING') {
      item.append(button('admit', label, () => this.admit(place, false)));
      item.append(button('turnAway', label, () => this.remove(place, 'turnedAway')));
    } else {
      item.append(button('makeCaptain', label, () => this.admit(place, true)));
      item.append(button('remove', label, () => this.remove(place, 'leagueLeft')));
    }
    return item;
  }

  async admit(place, captain) {
    const input = { league: this.league.id, user: place.user.id, captain };
    const told = { ...MEANWHILE, CONFLICT: captain ? 'tooManyCaptains' : 'leagueFull' };
    const { member, league } = await change(AdmitToLeague, input, told);
    place.membership = member.membership;
    this.changed(league, captain ? 'madeCaptain' : 'admitted', place);
  }

  async remove(place, key) {
    const { league } = await change(RemoveFromLeague, { league: this.league.id, user: place.user.id }, MEANWHILE);
    this.places = this.places.filter(each => each !== place);
    this.changed(league, key, place);
  }

  // The button that was pressed is gone.
  changed({ memberCount }, key, { user }) {
    this.league.memberCount = memberCount ?? this.league.memberCount;
    this.fill();
    (['admitted', 'turnedAway'].includes(key) ? this.asking : this.count).focus();
    tell(say(key, { label: isolated(user.name) }));
  }
}

async function copy(shown) {
  try {
    await navigator.clipboard.writeText(shown.textContent);
    tell(say('copied'));
  } catch { // no page may, over plain http
    getSelection().selectAllChildren(shown);
    tell(say('selected'));
  }
}
