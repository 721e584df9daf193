// Signs people in on the service's own origin, where a cookie keeps their session; and hands a page of another site a
// token of its own, once somebody has pressed the button that names the site.

const asked = JSON.parse(document.body.dataset.asked);
const LANGUAGES = ['en', 'de', 'es', 'ar'];
const KEPT = 'ringside-sign-in'; // the request of the code that this window waits for, and who asked

const by = id => document.getElementById(id);
let texts = {};
let signedIn = null;

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

// Names and addresses may run in the other direction than the sentence around them.
const isolated = text => `\u2068${text}\u2069`;

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

// By the digits or the link of an email. What is wrong with these is that their member was erased; otherwise it is the
// page that may sign nobody in, behind a proxy that the service does not know, say.
function signIn(input) {
  return ask(SignIn, { input }).catch(error => {
    throw error.code === 'NOT_ALLOWED' && error.path ? new Refused('erased') : error;
  });
}

// With a proof of work, where the site asks for one. Who is signed in becomes somebody else.
async function asGuest(input) {
  if (signedIn) await ask(SignOut, { input: {} });
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

// ── showing ──

const SECTIONS = ['methods', 'code', 'link', 'signed-in'];

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
    if (input) mark(input, reason(error));
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

function showMethods() {
  const offered = name => asked.methods.includes(name);
  by('provider').hidden = !offered('PROVIDER');
  by('provider').textContent = say('byProvider', { provider: asked.provider });
  by('email').hidden = !offered('EMAIL');
  // Who is a guest would lose what is theirs by becoming another one.
  by('guest').hidden = !offered('GUEST') || asked.again || Boolean(signedIn?.isGuest);
  by('none').hidden = asked.methods.some(each => each !== 'SITE');
  const [first, second] = document.querySelectorAll('[data-between]');
  first.hidden = by('provider').hidden || by('email').hidden;
  second.hidden = by('guest').hidden || (by('provider').hidden && by('email').hidden);
  show('methods', title(), offered('EMAIL') ? by('address') : undefined);
}

function showCode(address) {
  by('sent').textContent = say('codeSent', { address: isolated(address) });
  by('number').value = '';
  mark(by('number'), '');
  show('code', title(), by('number'));
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

function showSignedIn() {
  const name = isolated(signedIn.name);
  by('continue').textContent = asked.site ? say('continueOn', { name, site: asked.site }) : say('continueAs', { name });
  by('continue').hidden = !asked.site && !asked.returnTo;
  by('add').hidden = !asked.methods.includes('PROVIDER');
  by('add').textContent = say('addProvider', { provider: asked.provider, name });
  // A guest stays who they are with an address that is nobody's.
  const isLed = signedIn.isGuest && asked.methods.includes('EMAIL');
  by('somebody-else').textContent = say(isLed ? 'withAddress' : 'somebodyElse');
  by('somebody-else').hidden = signedIn.isGuest && !asked.methods.some(each => ['EMAIL', 'PROVIDER'].includes(each));
  show('signed-in', say('signedInAs', { name }), by('continue').hidden ? undefined : by('continue'));
}

async function showAnew() {
  signedIn = await ask(Viewer).catch(() => null);
  if (signedIn) showSignedIn();
  else showMethods();
}

// ── what people do ──

async function enter(user) {
  signedIn = user;
  sessionStorage.removeItem(KEPT);
  // A page of another site gets its token only by a press of the button that names the site.
  if (!asked.site && asked.returnTo) location.replace(asked.returnTo);
  else showSignedIn();
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

function listen() {
  by('email').addEventListener('submit', event => {
    event.preventDefault();
    const input = by('address');
    const email = input.value.trim();
    if (!/^\S+@\S+$/.test(email)) return mark(input, say('badAddress'));
    working(async () => {
      const variables = { email, language: document.documentElement.lang };
      if (asked.returnTo) variables.returnTo = asked.returnTo;
      const { request } = await ask(Request, { input: variables }).catch(error => {
        throw error.code === 'INVALID_INPUT' ? new Refused('badAddress') : error;
      });
      const kept = { request, email, until: Date.now() + 15 * 60_000, as: JSON.stringify(signedIn) };
      sessionStorage.setItem(KEPT, JSON.stringify(kept));
      showCode(email);
    }, input);
  });
  by('digits').addEventListener('submit', event => {
    event.preventDefault();
    const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? '{}');
    const code = by('number').value.replace(/\P{Nd}/gu, ''); // pasted, with marks of its direction, say
    if (!/^\p{Nd}{6}$/u.test(code)) return mark(by('number'), say('TOKEN_UNKNOWN')); // it would count as a guess
    const input = { request: kept.request, code };
    working(async () => enter((await signIn(input)).user), by('number'));
  });
  by('another').addEventListener('click', () => {
    sessionStorage.removeItem(KEPT);
    showMethods();
  });
  by('guest').addEventListener('submit', event => {
    event.preventDefault();
    const name = by('name').value.trim();
    if (!name) return mark(by('name'), say('badName'));
    working(async () => {
      try {
        await enter((await asGuest({ name })).user);
      } catch (error) {
        if (error.code === 'NOT_ALLOWED') await showAnew(); // another tab has signed somebody in
        if (!signedIn) throw error.code === 'INVALID_INPUT' ? new Refused('badName') : error;
      }
    }, by('name'));
  });
  by('press').addEventListener('click', () =>
    working(async () => {
      try {
        await enter((await signIn({ token: asked.link.token })).user);
      } catch (error) {
        showMethods();
        throw error;
      }
    }));
  by('continue').addEventListener('click', () => working(handOver));
  by('provider').addEventListener('click', () => toProvider(false));
  by('add').addEventListener('click', () => toProvider(true));
  by('somebody-else').addEventListener('click', showMethods);
  by('sign-out').addEventListener('click', () =>
    working(async () => {
      await ask(SignOut, { input: {} });
      signedIn = null;
      showMethods();
      tell(say('signedOut'));
    }));
}

// ── beginning ──

async function begin() {
  await loadTexts();
  listen();
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
  signedIn = await ask(Viewer).catch(() => null);
  const isDone = location.pathname.endsWith('/done');
  if (isDone && signedIn && !asked.site && asked.returnTo) {
    location.replace(asked.returnTo); // back from the provider
    return;
  }
  const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? 'null');
  // Who was signed in when they asked waits for it still, unless another tab has signed somebody in.
  const waits = kept && kept.until > Date.now() && (asked.again || !signedIn || kept.as === JSON.stringify(signedIn));
  if (waits) showCode(kept.email);
  else if (signedIn && !asked.again) showSignedIn();
  else showMethods();
  if (asked.error) tell(say(asked.error));
  else if (asked.again) tell(say('again'));
}

// Without the texts, in the language in which the page is written.
begin().catch(() => tell('This page did not load. Please load it again.'));
