// Signs people in on the service's own origin, where a cookie keeps their session; hands a page of another site a token
// of its own, once somebody has pressed the button that names the site; and shows members what is theirs.

const asked = JSON.parse(document.body.dataset.asked);
const LANGUAGES = ['en', 'de', 'es', 'ar'];
const KEPT = 'ringside-sign-in'; // the request of the code that this window waits for, and who asked
const UNNAMED = 'ringside-unnamed'; // who was asked for a name here and gave none
const REMINDERS = [0, 1, 3, 6, 12, 24, 48, 72, 168];
const MOST_WAITING = 60_000;
const MOST_KEPT = 3_600_000;
const REFUSED = { NOT_ALLOWED: 'notPossible', NOT_SIGNED_IN: 'again', RATE_LIMITED: 'tooOften' };

const by = id => document.getElementById(id);
let texts = {};
let signedIn = null;
let adds = false; // whether an address is asked for to be added
let filledFor = ''; // who is shown what they may change
let shown = ''; // whose leagues and subscriptions the account has, or is reading
const begun = {}; // by whom and what: the answers whose jobs are under way

// ── texts ──

function say(key, values = {}) {
  return (texts[key] ?? key).replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

async function loadTexts() {
  const wanted = [asked.language, ...navigator.languages].filter(Boolean).map(each => each.toLowerCase().split('-')[0]);
  const language = wanted.find(each => LANGUAGES.includes(each)) ?? 'en';
  texts = await (await fetch(`/sign-in/texts/${language}.json`)).json();
  document.documentElement.lang = language;
  document.documentElement.dir = language === 'ar' ? 'rtl' : 'ltr';
  for (const each of document.querySelectorAll('[data-text]')) each.textContent = say(each.dataset.text);
}

const who = () => signedIn && `${signedIn.id} ${signedIn.isGuest}`;

// Names and addresses may run in the other direction than the sentence around them.
const isolated = text => `\u2068${text}\u2069`;

// ── what is kept ──

const memory = {}; // for a browser that stores nothing for the page, as one that blocks cookies

function kept(key, storage = 'sessionStorage') {
  try {
    return memory[key] ?? window[storage].getItem(key);
  } catch {
    return null;
  }
}

function keep(key, text, storage = 'sessionStorage') {
  memory[key] = text;
  try {
    window[storage].setItem(key, text);
  } catch {} // it is kept until the page is left
}

function forget(key) {
  delete memory[key];
  try {
    sessionStorage.removeItem(key);
  } catch {} // nothing is stored
}

// ── asking the service ──

class Refused extends Error {
  constructor(code, path = null) {
    super(code);
    this.code = code;
    this.path = path;
  }
}

async function post(path, body) {
  const response = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify(body),
  });
  const answer = await response.json().catch(() => ({}));
  return { response, answer };
}

// A session that has ended is answered once with 401, which deletes its cookie.
async function ask(query, variables = {}, again = true) {
  const { response, answer } = await post('/graphql', { query, variables });
  if (response.status === 401 && again) return ask(query, variables, false);
  const value = answer.data && Object.values(answer.data)[0];
  if (answer.errors || value === undefined) throw new Refused(answer.errors?.[0]?.extensions?.code ?? 'failed');
  if (value?.code) throw new Refused(value.code, value.path);
  return value;
}

// The service knows them and runs them where it runs trusted documents alone.
const { Viewer, Request, SignIn, AsGuest, Challenge, SignOut } = asked.documents;
const { UpdateProfile, AddIdentity, RemoveIdentity, ClaimComments, ExportMember, EraseMember, Job } = asked.documents;

// By the digits or the link of an email. What is wrong with these is that their member was erased; otherwise it is the
// page that may sign nobody in, behind a proxy that the service does not know, say.
function signIn(input) {
  return ask(SignIn, { input }).catch(error => {
    throw error.code === 'NOT_ALLOWED' && error.path ? new Refused('erased') : error;
  });
}

// With a proof of work, where the site asks for one. Who is signed in becomes somebody else.
async function asGuest(input) {
  if (signedIn) {
    await ask(SignOut, { input: {} });
    tellTabs();
    by('back').hidden = true; // should the guest be refused, there is nobody to go back to
  }
  signedIn = null;
  try {
    return await ask(AsGuest, { input });
  } catch (error) {
    if (error.code !== 'CHALLENGE_NEEDED') throw error;
    const { solve } = await import('/sign-in/challenge.js');
    return ask(AsGuest, { input: { ...input, solution: await solve(await ask(Challenge)) } });
  }
}

// With `user` it counts only for whom the page shows: another tab may have signed somebody else in, or them out.
async function send(path, body) {
  const { response, answer } = await post(path, body);
  const changed = [401, 409].includes(response.status);
  if (changed) await showAnew();
  if (!response.ok) throw new Refused(changed ? 'changed' : 'failed');
  return answer;
}

async function checkMember() {
  if ((await ask(Viewer))?.id === signedIn.id) return;
  await showAnew();
  throw new Refused('changed');
}

// Changes what belongs to whom the page shows, if they are still signed in. `then` is where to go on after signing in
// anew, if this asks for a recent sign-in; `told` says refusals in other words than those of signing in.
async function change(query, input, { then = '', ...told } = {}) {
  await checkMember();
  return ask(query, { input }).catch(error => {
    if (error.code === 'NOT_SIGNED_IN') signInAgain(then);
    throw new Refused({ ...REFUSED, ...told }[error.code] ?? error.code, error.path);
  });
}

function signInAgain(then) {
  const search = location.search.length < 1000 ? location.search : '';
  const query = { again: '1', language: document.documentElement.lang, returnTo: `/sign-in${search}${then}` };
  location.assign(`/sign-in?${new URLSearchParams(query)}`);
}

// What the service answered that began a job, and the job as it has ended. Who presses again before it has goes on with
// the same one, as long as the link of a file counts.
async function finished(query, input, told) {
  const key = `${signedIn.id} ${query}`;
  if (begun[key]?.until > Date.now()) await checkMember();
  else begun[key] = { until: Date.now() + MOST_KEPT, ...(await change(query, input, told)) };
  const job = await ended(begun[key].job);
  const answer = { ...begun[key], job };
  delete begun[key];
  if (job.state === 'FAILED') throw new Refused('failed');
  return answer;
}

async function ended({ id }) {
  for (const until = Date.now() + MOST_WAITING; Date.now() < until; ) {
    const job = await ask(Job, { id });
    if (['DONE', 'FAILED'].includes(job?.state)) return job;
    await new Promise(resolve => setTimeout(resolve, 500));
  }
  throw new Refused('underWay');
}

// ── showing ──

const SECTIONS = ['methods', 'code', 'link', 'naming', 'signed-in', 'erasing', 'ending'];

function show(section, title, focus) {
  for (const each of SECTIONS) by(each).hidden = each !== section;
  by('title').textContent = document.title = title;
  (focus ?? by('title')).focus();
}

function tell(text) {
  by('status').textContent = text;
}

function mark(input, text) {
  const line = by(`${input.id}-error`);
  line.textContent = text;
  line.hidden = !text;
  input.toggleAttribute('aria-invalid', false);
  if (text) {
    input.setAttribute('aria-invalid', 'true');
    input.focus();
  }
}

const reason = error => (texts[error.code] ? say(error.code) : say('failed'));

// While one thing is under way, nothing else begins.
async function working(work, input) {
  const focused = document.activeElement;
  const buttons = [...document.querySelectorAll('button')].filter(each => !each.disabled);
  for (const each of buttons) each.disabled = true;
  tell(say('wait'));
  if (input) mark(input, '');
  let text = '';
  try {
    await work();
  } catch (error) {
    const isTyped = input?.offsetParent && error.code !== 'changed'; // by whom the page shows, and shown still
    if (isTyped) mark(input, reason(error));
    else text = reason(error);
  } finally {
    for (const each of buttons) each.disabled = false;
    if (by('status').textContent === say('wait')) tell(text);
    if (document.activeElement === document.body) focused.focus(); // a disabled button had lost it
  }
}

// ── views ──

function title() {
  return asked.site ? say('signInOn', { site: asked.site }) : say('signIn');
}

const offered = name => asked.methods.includes(name);

function showMethods() {
  adds = false;
  by('provider').hidden = !offered('PROVIDER');
  by('provider').textContent = say('byProvider', { provider: asked.provider });
  by('email').hidden = !offered('EMAIL');
  // Who is a guest would lose what is theirs by becoming another one.
  by('guest').hidden = !offered('GUEST') || asked.again || Boolean(signedIn?.isGuest);
  by('none').hidden = asked.methods.some(each => each !== 'SITE');
  const [first, second] = document.querySelectorAll('[data-between]');
  first.hidden = by('provider').hidden || by('email').hidden;
  second.hidden = by('guest').hidden || (by('provider').hidden && by('email').hidden);
  by('back').hidden = !signedIn || asked.again;
  show('methods', title(), offered('EMAIL') ? by('address') : undefined);
}

function showAddress() {
  showMethods();
  adds = true;
  for (const each of [by('provider'), by('guest'), ...document.querySelectorAll('[data-between]')]) each.hidden = true;
  show('methods', say('addAddress'), by('address'));
}

function showCode(address) {
  by('sent').textContent = say('codeSent', { address: isolated(address) });
  by('number').value = '';
  mark(by('number'), '');
  by('hint').textContent = adds ? `${say('codeHint')} ${say('addHint')}` : say('codeHint');
  by('give').textContent = say(adds ? 'addAddress' : 'signIn');
  show('code', adds ? say('addAddress') : title(), by('number'));
  if (asked.demo) showDemoEmail(address);
}

async function showDemoEmail(address) {
  for (let attempt = 0; attempt < 20; attempt++) {
    const emails = await (await fetch('/sign-in/emails')).json();
    const email = emails.find(each => each.to.toLowerCase() === address.toLowerCase());
    if (email) {
      by('demo-text').textContent = `${email.subject}\n\n${email.text}`;
      by('demo').hidden = false;
      return;
    }
    await new Promise(resolve => setTimeout(resolve, 250));
  }
}

function showLink() {
  by('press').textContent = say('signInAs', { address: isolated(asked.link.address) });
  show('link', title(), by('press'));
}

function showNaming() {
  mark(by('new-name'), '');
  show('naming', say('chooseName'), by('new-name'));
}

function showSignedIn() {
  filledFor = who();
  by('continue').hidden = !asked.site && !asked.returnTo;
  // A guest stays who they are with an address that is nobody's.
  by('somebody-else').textContent = say(signedIn.isGuest && offered('EMAIL') ? 'withAddress' : 'somebodyElse');
  by('somebody-else').hidden = signedIn.isGuest && !['EMAIL', 'PROVIDER'].some(offered);
  by('account').open = by('continue').hidden;
  fillProfile();
  fillAddress();
  fillEmails();
  fillIdentities();
  fillMore();
  showFilled();
}

function showFilled() {
  show('signed-in', titleOfMember(), by('continue').hidden ? undefined : by('continue'));
}

// What was typed there, and is not saved yet, stays.
function goBack() {
  if (filledFor === who()) showFilled();
  else showSignedIn();
}

const titleOfMember = () => say('signedInAs', { name: isolated(signedIn.name) });

// What takes questions of its own, once the account is opened: signing in waits for none of it.
async function fillMore() {
  const whose = signedIn && `${who()} ${Boolean(signedIn.suspension)}`;
  if (shown !== whose) for (const each of ['leagues', 'subscriptions']) by(each).hidden = true;
  if (!whose || shown === whose || !by('account').open) return;
  shown = whose;
  try {
    const [{ fillLeagues }, { fillSubscriptions }] = await Promise.all([
      import('/sign-in/account-leagues.js'), import('/sign-in/account-subscriptions.js'),
    ]).catch(() => {
      throw new Refused('notLoaded');
    });
    await Promise.all([fillLeagues(), fillSubscriptions()]);
  } catch (error) { // opened again, it asks again; a script that did not arrive needs the page anew
    shown = '';
    if (!by('status').textContent) tell(reason(error));
  }
}

const option = (value, text, chosen) => new Option(text, value, false, value === chosen);

const make = (name, properties = {}) => Object.assign(document.createElement(name), properties);

// `label` says to whom or what it belongs, among several that look alike.
function button(key, label, work, look = 'quiet') {
  const made = make('button', { type: 'button', className: look, textContent: say(key) });
  made.setAttribute('aria-label', say(`${key}This`, { label }));
  made.addEventListener('click', () => working(work));
  return made;
}

function fillProfile() {
  const { isGuest, suspension, timeZone } = signedIn, name = isolated(signedIn.name);
  by('title').textContent = document.title = titleOfMember();
  by('continue').textContent = asked.site ? say('continueOn', { name, site: asked.site }) : say('continueAs', { name });
  by('add').textContent = say('addProvider', { provider: asked.provider, name });
  fillSuspension(suspension);
  by('profile').hidden = Boolean(suspension);
  by('own-name').value = signedIn.name;
  by('zones').hidden = isGuest;
  const chosen = timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
  const zones = new Set([...Intl.supportedValuesOf('timeZone'), 'UTC', chosen]);
  by('zone').replaceChildren(...[...zones].sort().map(zone => option(zone, zone.replaceAll('_', ' '), chosen)));
  fillZoneHint();
}

// The browser's zone is shown to whom has none, and counts once it is saved, with the name or with the emails.
function fillZoneHint() {
  by('zone-hint').textContent = say(signedIn.timeZone ? 'timeZoneHint' : 'noTimeZoneHint');
}

function fillSuspension(suspension) {
  by('suspended').hidden = !suspension;
  by('suspended-until').hidden = !suspension?.until;
  if (suspension) by('suspended').textContent = say('suspended', { reason: isolated(suspension.reason) });
  if (!suspension?.until) return;
  const { format } = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: 'long', timeStyle: 'short' });
  by('suspended-until').textContent = say('suspendedUntil', { time: format(new Date(suspension.until)) });
}

function fillAddress() {
  const { email, isGuest, suspension } = signedIn;
  by('emails').hidden = !offered('EMAIL') || !email || isGuest || Boolean(suspension);
  const isProven = signedIn.identities.some(({ method, label }) => method === 'EMAIL' && label === email);
  const goTo = say('emailsTo', { address: isolated(email ?? '') });
  by('emails-to').textContent = isProven ? goTo : `${goTo} ${say('emailsHint')}`; // emails reach only who has shown it
}

function fillEmails() {
  const hours = signedIn.lockReminderHours ?? 0;
  by('replies').checked = signedIn.replyEmails;
  const unit = { style: 'unit', unit: 'hour', unitDisplay: 'long' };
  const { format } = new Intl.NumberFormat(document.documentElement.lang, unit);
  const choices = [...new Set([...REMINDERS, hours])].sort((one, other) => one - other);
  const text = each => (each ? say('before', { time: format(each) }) : say('never'));
  by('reminder').replaceChildren(...choices.map(each => option(each, text(each), hours)));
  by('word-at').value = signedIn.dailyWordAt ?? '';
  fillZoneHint();
}

function fillIdentities() {
  const { identities, isGuest, suspension } = signedIn, isOnly = identities.length < 2;
  by('identities').replaceChildren(...identities.map(({ method, label }) => {
    const item = make('li'), text = make('span', { textContent: method === 'GUEST' ? say('guest') : isolated(label) });
    item.append(text);
    if (!isOnly && !suspension) item.append(removing({ method, label }));
    return item;
  }));
  by('add-address').hidden = isGuest || !offered('EMAIL');
  by('add').hidden = !offered('PROVIDER');
  by('everywhere').hidden = isGuest;
  const hasAddress = Boolean(signedIn.email) || identities.some(({ method }) => method === 'EMAIL');
  by('claiming').hidden = isGuest || !hasAddress || Boolean(suspension);
}

function removing(identity) {
  const label = isolated(identity.label);
  return button('remove', label, async () => {
    take((await change(RemoveIdentity, identity, { CONFLICT: 'lastIdentity' })).user);
    by('identities-title').focus();
    tell(say('removed', { label }));
  });
}

function showErasing(choice = 'ANONYMISE') {
  for (const each of document.querySelectorAll('[name="contributions"]')) each.checked = each.value === choice;
  show('erasing', say('eraseTitle', { name: isolated(signedIn.name) }));
}

async function showAnew() {
  signedIn = await ask(Viewer).catch(() => null);
  if (signedIn) showSignedIn();
  else showMethods();
}

// ── what people do ──

// Tabs with the elements, also those that are gone back to, ask anew who is signed in once what is kept changes.
function tellTabs() {
  const key = `ringside ${location.origin}/`;
  try {
    localStorage.setItem(key, JSON.stringify({ ...JSON.parse(localStorage.getItem(key)), at: Date.now() }));
  } catch { /* blocked: they notice once somebody acts in them */ }
}

async function enter() {
  forget(KEPT);
  shown = ''; // what the account had may be old
  signedIn = await ask(Viewer);
  if (!signedIn) throw new Refused('noCookie');
  tellTabs();
  // The service makes up a name for whom nobody has named.
  const isNamed = !/^Member [b-z]{4}$/.test(signedIn.name) || kept(UNNAMED, 'localStorage') === signedIn.id;
  if (isNamed || asked.again || signedIn.suspension) goOn();
  else showNaming();
}

function goOn() {
  // A page of another site gets its token only by a press of the button that names the site.
  if (!asked.site && asked.returnTo) location.replace(asked.returnTo);
  else showSignedIn();
}

// How the member signs in now. What they typed elsewhere, and have not saved yet, stays.
function take({ email, identities }) {
  Object.assign(signedIn, { email, identities });
  fillAddress();
  fillIdentities();
}

async function addAddress(input) {
  const { email } = signedIn;
  const { user } = await change(AddIdentity, input, { then: '#add' }).catch(error => {
    throw error.code === 'CONFLICT' && !error.path?.length ? new Refused('tooMany') : error; // else another member's
  });
  take(user);
  forget(KEPT);
  goBack();
  tell(signedIn.email === email ? say('added') : `${say('added')} ${say('emailsNow')}`);
}

function save(changes, filled, input) {
  return working(async () => {
    const { user } = await change(UpdateProfile, changes).catch(error => {
      throw error.code === 'INVALID_INPUT' && error.path?.includes('name') ? new Refused('badName') : error;
    });
    Object.assign(signedIn, user);
    if ('name' in changes) tellTabs(); // which show it
    filled();
    tell(say('saved'));
  }, input);
}

async function claim() {
  const { job } = await finished(ClaimComments, {}, { CONFLICT: 'noAddress' });
  take(await ask(Viewer)); // what was imported under an address brings what it signs in by
  const count = new Intl.NumberFormat(document.documentElement.lang).format(job.done);
  tell(job.done ? say('claimed', { count }) : say('noneClaimed'));
}

async function download() {
  const { url } = await finished(ExportMember, { user: signedIn.id });
  const { pathname, search } = new URL(url, location.href);
  location.assign(pathname + search); // which is no page, so this one stays
  tell(say('downloaded'));
}

async function erase(contributions) {
  await change(EraseMember, { user: signedIn.id, contributions }, { then: `#erase-${contributions}` });
  await ask(SignOut, { input: {} }).catch(() => null); // its cookie shows a former member for some seconds otherwise
  tellTabs();
  signedIn = null;
  showMethods();
  tell(say('deleted'));
}

async function handOver() {
  if (!asked.site) {
    location.replace(asked.returnTo);
    return;
  }
  const opener = asked.origin && window.opener && !window.opener.closed ? window.opener : null;
  if (opener) {
    const { token, expiresAt } = await send('/sign-in/done', { origin: asked.origin, user: signedIn.id });
    opener.postMessage({ type: 'ringside:signed-in', token, expiresAt, state: asked.state }, asked.origin);
    tell(say('done'));
    window.close();
    return;
  }
  // The page's policy may have cut the tie to its window: then it is led back, with a code that counts for a minute.
  const returnTo = asked.returnTo ?? `${asked.origin}/`;
  const { location: address } = await send('/sign-in/done', { returnTo, user: signedIn.id });
  location.replace(address);
}

function toProvider(add) {
  return working(async () => {
    const { location: address } = await send('/sign-in', { asked: location.search, add, user: add ? signedIn.id : null });
    location.assign(address);
  });
}

// The second click of a double one presses nothing: nobody has read what stands there by then, the next of a list say.
function pressOnce(event) {
  if (event.detail < 2 || !event.target.closest('button')) return;
  event.preventDefault();
  event.stopPropagation();
}

function listen() {
  document.addEventListener('click', pressOnce, true);
  by('email').addEventListener('submit', event => {
    event.preventDefault();
    const input = by('address');
    const email = input.value.replace(/\p{Cf}/gu, '').trim(); // pasted, with marks of its direction, say
    if (!/^\S+@\S+$/.test(email)) return mark(input, say('badAddress'));
    working(async () => {
      const variables = { email, language: document.documentElement.lang };
      if (asked.returnTo && !adds) variables.returnTo = asked.returnTo;
      const { request } = await ask(Request, { input: variables }).catch(error => {
        throw error.code === 'INVALID_INPUT' ? new Refused('badAddress') : error;
      });
      keep(KEPT, JSON.stringify({ request, email, until: Date.now() + 15 * 60_000, as: who(), adds }));
      showCode(email);
    }, input);
  });
  by('digits').addEventListener('submit', event => {
    event.preventDefault();
    const { request } = JSON.parse(kept(KEPT) ?? '{}');
    const code = by('number').value.replace(/\P{Nd}/gu, ''); // pasted, with marks of its direction, say
    if (!/^\p{Nd}{6}$/u.test(code)) return mark(by('number'), say('TOKEN_UNKNOWN')); // it would count as a guess
    const input = { request, code };
    working(async () => {
      if (adds) return addAddress(input);
      if (request) await signIn(input); // without one, the code was accepted and only what came after it failed
      return enter();
    }, by('number'));
  });
  by('another').addEventListener('click', () => {
    forget(KEPT);
    if (adds) showAddress();
    else showMethods();
  });
  by('guest').addEventListener('submit', event => {
    event.preventDefault();
    const name = by('name').value.trim();
    if (!name) return mark(by('name'), say('badName'));
    working(async () => {
      try {
        await asGuest({ name });
        await enter();
      } catch (error) {
        const isSomebody = error.code === 'NOT_ALLOWED'; // another tab, or the press before, has signed somebody in
        if (isSomebody) {
          await showAnew();
          tellTabs();
        }
        if (!signedIn || !isSomebody) throw error.code === 'INVALID_INPUT' ? new Refused('badName') : error;
      }
    }, by('name'));
  });
  by('press').addEventListener('click', () =>
    working(async () => {
      const { token } = asked.link;
      if (token) await signIn({ token }).catch(error => {
        showMethods();
        throw error;
      });
      delete asked.link.token; // it is used up, and what comes after it may fail
      await enter().catch(error => {
        if (error.code === 'noCookie') showMethods();
        throw error;
      });
    }));
  by('continue').addEventListener('click', () => working(handOver));
  by('provider').addEventListener('click', () => toProvider(false));
  by('add').addEventListener('click', () => toProvider(true));
  by('somebody-else').addEventListener('click', showMethods);
  by('back').addEventListener('click', goBack);
  by('sign-out').addEventListener('click', () => signOut({}, 'signedOut'));
}

function signOut(input, text) {
  return working(async () => {
    await (input.everywhere ? change(SignOut, input) : ask(SignOut, { input }));
    tellTabs();
    signedIn = null;
    showMethods();
    tell(say(text));
  });
}

function listenToMembers() {
  by('called').addEventListener('submit', event => {
    event.preventDefault();
    const name = by('new-name').value.trim();
    if (!name) return mark(by('new-name'), say('badName'));
    save({ name }, goOn, by('new-name'));
  });
  by('not-now').addEventListener('click', () => {
    keep(UNNAMED, signedIn.id, 'localStorage');
    goOn();
  });
  by('profile').addEventListener('submit', event => {
    event.preventDefault();
    const name = by('own-name').value.trim(), timeZone = by('zone').value;
    if (!name) return mark(by('own-name'), say('badName'));
    save(changed(signedIn.isGuest ? { name } : { name, timeZone }), fillProfile, by('own-name'));
  });
  by('emails').addEventListener('submit', event => {
    event.preventDefault();
    const dailyWordAt = by('word-at').value || null, lockReminderHours = Number(by('reminder').value) || null;
    const timeZone = signedIn.timeZone ?? by('zone').value; // the one that is shown: without one, hours count in UTC
    save(changed({ replyEmails: by('replies').checked, lockReminderHours, dailyWordAt, timeZone }), fillEmails);
  });
  by('account').addEventListener('toggle', fillMore);
  by('add-address').addEventListener('click', showAddress);
  by('everywhere').addEventListener('click', () => signOut({ everywhere: true }, 'signedOutEverywhere'));
  by('claim').addEventListener('click', () => working(claim));
  by('download').addEventListener('click', () => working(download));
  by('delete').addEventListener('click', () => showErasing());
  by('keep').addEventListener('click', goBack);
  by('erase').addEventListener('submit', event => {
    event.preventDefault();
    working(() => erase(new FormData(by('erase')).get('contributions')));
  });
}

// What differs from what is stored: another page may have changed the rest.
function changed(values) {
  return Object.fromEntries(Object.entries(values).filter(([name, value]) => value !== signedIn[name]));
}

// What the account's other modules use.
export {
  Refused, ask, asked, button, by, change, goBack, isolated, make, mark, option, reason, say, show, signedIn, tell,
  working,
};

// ── beginning ──

async function begin() {
  await loadTexts();
  listen();
  listenToMembers();
  if (asked.refused) {
    show(null, say('signIn'));
    tell(say('notAllowed'));
    return;
  }
  if (asked.link) {
    history.replaceState(null, '', '/sign-in'); // the address of a link is not for bookmarks
    if (asked.link.address) showLink();
    else {
      showMethods();
      tell(say('TOKEN_EXPIRED'));
    }
    return;
  }
  let unread = null;
  signedIn = await ask(Viewer).catch(error => {
    unread = error;
    return null;
  });
  const isDone = location.pathname.endsWith('/done');
  if (isDone && signedIn) { // back from the provider, which is no place to load again
    history.replaceState(null, '', `/sign-in${location.search}`);
    return enter();
  }
  const sent = JSON.parse(kept(KEPT) ?? 'null');
  // Who was signed in when they asked waits for it still, unless another tab has signed somebody in.
  const isSame = sent?.adds ? !asked.again && sent.as === who() : asked.again || !signedIn || sent?.as === who();
  const then = /^#(add|erase-.*)$/.exec(location.hash)?.[1] ?? ''; // back from signing in anew
  if (sent && sent.until > Date.now() && isSame) {
    ({ adds } = sent);
    showCode(sent.email);
  } else if (!signedIn || asked.again) showMethods();
  else if (then === 'add') showAddress();
  else if (then.startsWith('erase-')) showErasing(then.split('-')[1]);
  else showSignedIn();
  if (then) history.replaceState(null, '', location.pathname + location.search);
  if (asked.error) tell(say(asked.error));
  else if (unread) tell(reason(unread));
  else if (asked.again) tell(say('again'));
}

// Without the texts, in the language in which the page is written.
begin().catch(() => tell('This page did not load. Please load it again.'));
