// A voting page on the GraphQL API: two mutations for voting, one subscription for the leaderboard.
// A vote without a response is sent again with the same token, so it counts once however often it arrives.
// On sites other than the service's, a visit's token stands for the visitor in place of the cookie.

const API = new URL(document.querySelector('meta[name="ringside-api"]').content, location.href);
const board = new URLSearchParams(location.search).get('board') ?? 'main';
const $ = (id) => document.getElementById(id);
const pause = (seconds) => new Promise((go) => setTimeout(go, seconds * 1000));

const BALLOT = `... on Ballot {
  token progress { seen remaining }
  left { id name description link svg imageUrl } right { id name description link svg imageUrl }
} ... on Refused { code message retryAfterSeconds }`;
const DRAW = `mutation Draw($board: String!) { drawMatchup(input: { board: $board }) { ${BALLOT} } }`;
const CAST = `mutation Cast($token: ID!, $verdict: Verdict!) {
  castVote(input: { token: $token, verdict: $verdict }) {
    ... on VoteCast { winner { name } progress { seen remaining } }
    ... on Refused { code message retryAfterSeconds }
  }
}`;
const START = `mutation Start {
  startVisit(input: {}) { ... on Visit { token expiresAt } ... on Refused { code message retryAfterSeconds } }
}`;
const BOARD = `query Board($board: String!) {
  board(slug: $board) { title contenders(first: 100) { nodes { id svg imageUrl } } }
}`;
const HOURS = `query Hours($board: String!) { board(slug: $board) { opensAt closesAt } }`;
const WATCH = `subscription Watch($board: String!) {
  leaderboardChanged(board: $board, first: 50) {
    rank wins losses score contender { id name } strength { value low high }
  }
}`;

async function post(query, variables, accept = 'application/json') {
  const headers = { 'content-type': 'application/json', accept };
  const token = isElsewhere && query !== START ? (await currentVisit()).token : visit?.token;
  if (token) headers.authorization = `Visitor ${token}`;
  const response = await fetch(API, { method: 'POST', headers, body: JSON.stringify({ query, variables }) });
  if (isElsewhere && response.status === 401) keep(null); // expired, or its secret is no longer used
  return response;
}

// ── the visit, on another site ──

const isElsewhere = API.origin !== location.origin;
const RENEWED_DAYS = 10;
const daysLeft = () => (Date.parse(visit?.expiresAt ?? 0) - Date.now()) / 86_400_000;
let visit = null;
let starting = null;
if (isElsewhere) {
  try { visit = JSON.parse(localStorage.getItem('ringside-visit')); } catch { /* the browser stores nothing here */ }
}

function keep(changed) {
  visit = changed;
  try { localStorage.setItem('ringside-visit', JSON.stringify(visit)); } catch { /* until the page is closed */ }
}

/** Returns the visit. A new one is the same visitor's if the old one is still valid. */
async function currentVisit() {
  if (visit && daysLeft() > RENEWED_DAYS) return visit;
  starting ??= ask(START).finally(() => { starting = null; });
  const started = await starting;
  if (started.code) throw new Error(started.message);
  keep(started);
  return visit;
}

/**
 * Returns the operation's only field, or the code and message of an error that the input is to blame for. Retries others
 * with increasing pauses, such as while the service is unreachable.
 */
async function ask(query, variables) {
  for (let wait = 0.5; ; wait = Math.min(wait * 2, 8)) {
    try {
      const { data, errors } = await (await post(query, variables)).json();
      if (errors?.[0].extensions?.code === 'BAD_USER_INPUT') return { code: 'BAD_USER_INPUT', message: errors[0].message };
      if (errors) throw new Error(errors[0].message);
      const answer = Object.values(data)[0];
      if (answer?.code !== 'UNAVAILABLE' && answer?.code !== 'RATE_LIMITED') return answer;
      wait = Math.max(wait, answer.retryAfterSeconds ?? 0);
      say(answer.message);
    } catch (problem) {
      // The TypeError of fetch says "Failed to fetch" or the like, which differs between browsers.
      say(`${problem instanceof TypeError ? 'The service cannot be reached.' : problem.message} Trying again.`);
      if (problem instanceof TypeError) hint();
    }
    await pause(wait);
  }
}

let isHinted = false;

/** Tells the operator, once, what a browser does not tell the page: whether the service allows pages of this site. */
function hint() {
  if (isElsewhere && !isHinted) console.warn(`Does RINGSIDE_CORS_ORIGINS of the service at ${API.origin} have ${location.origin}?`);
  isHinted = true;
}

const say = (text) => { $('status').textContent = text; };
// Shown as an image, SVG can neither run scripts nor load anything.
const image = ({ svg, imageUrl }) => (svg ? `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}` : imageUrl);

// ── voting ──

const pictures = new Map();
const buttons = { LEFT: $('left'), RIGHT: $('right'), TIE: $('tie'), SKIP: $('skip') };
const keys = { ArrowLeft: 'LEFT', ArrowRight: 'RIGHT', ArrowUp: 'TIE', ArrowDown: 'SKIP' };
let ballot = null;

function show(contender, corner) {
  const img = corner.querySelector('img');
  const picture = image(contender);
  if (picture) img.src = picture;
  else img.removeAttribute('src');
  corner.querySelector('.name').textContent = contender.name;
  corner.setAttribute('aria-label', `Vote for ${contender.name}`);
  pictures.set(contender.id, picture);
  describe(contender, corner);
}

/** Shows what is known beside the name, as text: none of it is markup. */
function describe({ name, description, link }, corner) {
  const text = corner.parentElement.querySelector('.description');
  text.textContent = description ?? '';
  text.hidden = !description;
  if (description) corner.setAttribute('aria-describedby', text.id);
  else corner.removeAttribute('aria-describedby');
  const more = corner.parentElement.querySelector('.more');
  // The service takes https:// only; this page does not rely on it.
  more.hidden = !link?.startsWith('https://');
  if (more.hidden) more.removeAttribute('href');
  else more.href = link;
  more.replaceChildren(...(more.hidden ? [] : ['More about ', element('bdi', {}, name)]));
}

function progress({ seen, remaining }) {
  $('progress').max = Math.max(seen + remaining, 1);
  $('progress').value = seen;
  $('seen').textContent = `${seen} of ${seen + remaining} pairs seen`;
}

function enable(on) {
  for (const button of Object.values(buttons)) button.disabled = !on;
}

async function draw() {
  const drawn = await ask(DRAW, { board });
  document.body.classList.toggle('idle', Boolean(drawn.code));
  if (drawn.code === 'LOCKED') {
    closed(drawn.retryAfterSeconds);
    return;
  }
  if (drawn.code === 'NOT_FOUND' || drawn.code === 'INVALID_INPUT') { // the board is the only input
    missing();
    return;
  }
  if (drawn.code) {
    say(drawn.code === 'EXHAUSTED' ? 'There is nothing to vote on yet: come back when there are two contenders.' : drawn.message);
    return;
  }
  ballot = drawn;
  show(ballot.left, buttons.LEFT);
  show(ballot.right, buttons.RIGHT);
  progress(ballot.progress);
  for (const button of Object.values(buttons)) button.classList.remove('chosen');
  enable(true);
}

/** Says that the address names no board, and where one is. */
function missing() {
  document.body.classList.add('missing');
  $('question').textContent = 'There is no such vote';
  say(`Nothing is called “${board}” here. Perhaps the link is old or has a typing mistake. `);
  $('status').append(element('a', { href: location.pathname }, 'See what there is to vote on'));
}

/** Says when voting opens, and draws then; or that it has ended. `seconds` until it opens are by the service's clock. */
async function closed(seconds) {
  const { opensAt, closesAt } = await ask(HOURS, { board });
  const when = (time) => new Date(time).toLocaleString(undefined, { dateStyle: 'full', timeStyle: 'short' });
  if (seconds === null) {
    say(closesAt ? `Voting ended on ${when(closesAt)}. The leaderboard shows the result.` : 'Voting has ended.');
    return;
  }
  say(opensAt ? `Voting opens on ${when(opensAt)}. Leave this page open: it will be ready.` : 'Voting opens soon.');
  await pause(Math.min(seconds + 0.1, 60)); // at most a minute, because the time may be changed
  say('');
  await draw();
}

async function cast(verdict) {
  if (!ballot) return;
  const { token, left, right } = ballot;
  const held = document.activeElement;
  ballot = null;
  enable(false);
  buttons[verdict].classList.add('chosen');
  const answer = await ask(CAST, { token, verdict });
  if (answer.code) say(answer.message);
  else {
    progress(answer.progress);
    const said = { TIE: `${left.name} and ${right.name} tie.`, SKIP: 'Skipped.' };
    say(answer.progress.remaining ? said[verdict] ?? `A vote for ${answer.winner.name}.` : 'You have seen every pair. Here they come again, in another order.');
  }
  await draw();
  if (held instanceof HTMLButtonElement) held.focus();
}

for (const [verdict, button] of Object.entries(buttons)) button.addEventListener('click', () => cast(verdict));
addEventListener('keydown', (event) => {
  const verdict = keys[event.key];
  if (!verdict || event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  if (event.target.closest?.('.board')) return; // arrow keys scroll the leaderboard
  event.preventDefault();
  cast(verdict);
});

// ── the leaderboard ──

const rowsByContender = new Map();
const SVG = 'http://www.w3.org/2000/svg';

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** An empty chart of strengths from `low` to `high`, a function that adds shapes to it, and one that places values. */
function chart(label, low, high) {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('class', 'interval');
  svg.setAttribute('viewBox', '0 0 104 16');
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', label);
  const add = (name, attributes, text = '') => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    svg.append(made);
  };
  return { svg, add, x: (value) => 4 + (96 * (value - low)) / (high - low || 1) };
}

function interval(strength, low, high) {
  const { svg, add, x } = chart(
    strength ? `${strength.value.toFixed(2)}, from ${strength.low.toFixed(2)} to ${strength.high.toFixed(2)}` : 'not known yet',
    low, high,
  );
  if (!strength) return svg;
  add('line', { x1: x(0), x2: x(0), y1: 1, y2: 15 });
  add('line', { class: 'span', x1: x(strength.low), x2: x(strength.high), y1: 8, y2: 8 });
  add('circle', { cx: x(strength.value), cy: 8, r: 3.5 });
  return svg;
}

/** The numbers above the column: zero, which is the average contender, and some steps to both sides. */
function axis(low, high) {
  const { svg, add, x } = chart(`from ${low.toFixed(1)} to ${high.toFixed(1)}; the average is 0`, low, high);
  const step = [0.25, 0.5, 1, 2, 5, 10].find((size) => (high - low) / size <= 5) ?? 20;
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) {
    if (x(value) < 8 || x(value) > 96) continue; // it would be cut off
    add('text', { x: x(value), y: 9 }, String(value).replace('-', '−'));
    add('line', { x1: x(value), x2: x(value), y1: 12, y2: 16 });
  }
  return svg;
}

function render(rows) {
  const strengths = rows.map((row) => row.strength).filter(Boolean);
  const low = Math.min(0, ...strengths.map((one) => one.low));
  const high = Math.max(0, ...strengths.map((one) => one.high));
  const drawn = rows.map((row) => {
    const { id, name } = row.contender;
    const before = rowsByContender.get(id);
    const cells = [
      element('td', {}, String(row.rank)),
      element('td', { class: 'who' }, element('span', {}, ...thumbnail(id), element('span', { dir: 'auto' }, name))),
      element('td', {}, `${row.wins} – ${row.losses}`),
      element('td', {}, row.score > 0 ? `+${row.score}` : String(row.score).replace('-', '−')),
      element('td', {}, interval(row.strength, low, high)),
    ];
    const counts = `${row.rank} ${row.wins} ${row.losses}`;
    const moved = before !== undefined && before !== counts;
    rowsByContender.set(id, counts);
    return element('tr', moved ? { class: 'moved' } : {}, ...cells);
  });
  $('rows').replaceChildren(...drawn);
  $('axis').replaceChildren(...(strengths.length ? [axis(low, high)] : []));
}

function thumbnail(id) {
  const picture = pictures.get(id);
  return picture ? [element('img', { alt: '', referrerpolicy: 'no-referrer', src: picture })] : [];
}

/** Yields each result of the subscription from the response's event stream. */
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split('\n\n');
    text = blocks.pop();
    for (const block of blocks) {
      const data = block.split('\n').find((line) => line.startsWith('data: '));
      if (data) yield JSON.parse(data.slice(6));
    }
  }
}

async function watch() {
  for (;;) {
    try {
      const response = await post(WATCH, { board }, 'text/event-stream');
      if (response.ok) {
        for await (const { data } of events(response)) {
          $('live').classList.add('on');
          if (data) render(data.leaderboardChanged);
        }
      }
    } catch { /* the connection broke: reconnect */ }
    $('live').classList.remove('on');
    await pause(2);
  }
}

// The answer sets a new visitor's cookie, so send no other mutation beside it.
await draw();
const found = await ask(BOARD, { board });
if (found && !found.code) {
  $('question').textContent = found.title;
  document.title = `Ringside · ${found.title}`;
  for (const contender of found.contenders.nodes) pictures.set(contender.id, image(contender));
  watch();
}
