// A voting page on the GraphQL API: two mutations for voting, one subscription for the leaderboard.
// A vote without a response is sent again with the same token, so it counts once however often it arrives.

const API = 'graphql';
const board = new URLSearchParams(location.search).get('board') ?? 'main';
const $ = (id) => document.getElementById(id);
const pause = (seconds) => new Promise((go) => setTimeout(go, seconds * 1000));

const BALLOT = `... on Ballot {
  token progress { seen remaining }
  left { id name svg } right { id name svg }
} ... on Refused { code message retryAfterSeconds }`;
const DRAW = `mutation Draw($board: String!) { drawMatchup(input: { board: $board }) { ${BALLOT} } }`;
const CAST = `mutation Cast($token: ID!, $verdict: Verdict!) {
  castVote(input: { token: $token, verdict: $verdict }) {
    ... on VoteCast { winner { name } progress { seen remaining } }
    ... on Refused { code message retryAfterSeconds }
  }
}`;
const BOARD = `query Board($board: String!) {
  board(slug: $board) { title contenders(first: 100) { nodes { id svg } } }
}`;
const WATCH = `subscription Watch($board: String!) {
  leaderboardChanged(board: $board, first: 50) {
    rank wins losses score contender { id name } strength { value low high }
  }
}`;

async function post(query, variables, accept = 'application/json') {
  const headers = { 'content-type': 'application/json', accept };
  return fetch(API, { method: 'POST', headers, body: JSON.stringify({ query, variables }) });
}

/** Returns the operation's only field. Retries with increasing pauses while the service is unreachable. */
async function ask(query, variables) {
  for (let wait = 0.5; ; wait = Math.min(wait * 2, 8)) {
    try {
      const { data, errors } = await (await post(query, variables)).json();
      if (errors) throw new Error(errors[0].message);
      const answer = Object.values(data)[0];
      if (answer?.code !== 'UNAVAILABLE' && answer?.code !== 'RATE_LIMITED') return answer;
      wait = Math.max(wait, answer.retryAfterSeconds ?? 0);
      say(answer.message);
    } catch (problem) {
      say(`${problem.message} Trying again.`);
    }
    await pause(wait);
  }
}

const say = (text) => { $('status').textContent = text; };
// Shown as an image, SVG can neither run scripts nor load anything.
const image = (svg) => (svg ? `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}` : '');

// ── voting ──

const pictures = new Map();
const buttons = { LEFT: $('left'), RIGHT: $('right'), TIE: $('tie'), SKIP: $('skip') };
const keys = { ArrowLeft: 'LEFT', ArrowRight: 'RIGHT', ArrowUp: 'TIE', ArrowDown: 'SKIP' };
let ballot = null;

function show(contender, corner) {
  const img = corner.querySelector('img');
  if (contender.svg) img.src = image(contender.svg);
  else img.removeAttribute('src');
  corner.querySelector('.name').textContent = contender.name;
  corner.setAttribute('aria-label', `Vote for ${contender.name}`);
  pictures.set(contender.id, contender.svg);
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
  if (drawn.code) {
    say(drawn.message);
    return;
  }
  ballot = drawn;
  show(ballot.left, buttons.LEFT);
  show(ballot.right, buttons.RIGHT);
  progress(ballot.progress);
  for (const button of Object.values(buttons)) button.classList.remove('chosen');
  enable(true);
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

function interval(strength, low, high) {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('class', 'interval');
  svg.setAttribute('viewBox', '0 0 104 16');
  svg.setAttribute('role', 'img');
  if (!strength) return svg;
  const text = `${strength.value.toFixed(2)}, from ${strength.low.toFixed(2)} to ${strength.high.toFixed(2)}`;
  svg.setAttribute('aria-label', text);
  const x = (value) => 4 + (96 * (value - low)) / (high - low || 1);
  const add = (name, attributes) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    svg.append(made);
  };
  add('line', { x1: x(0), x2: x(0), y1: 1, y2: 15 });
  add('line', { class: 'span', x1: x(strength.low), x2: x(strength.high), y1: 8, y2: 8 });
  add('circle', { cx: x(strength.value), cy: 8, r: 3.5 });
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
      element('td', { class: 'who' }, element('span', {}, ...thumbnail(id), name)),
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
}

function thumbnail(id) {
  const svg = pictures.get(id);
  return svg ? [element('img', { alt: '', src: image(svg) })] : [];
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

// The first response sets the visitor's cookie, so send nothing else before it.
await draw();
const found = await ask(BOARD, { board });
if (found) {
  $('question').textContent = found.title;
  document.title = `Ringside · ${found.title}`;
  for (const { id, svg } of found.contenders.nodes) pictures.set(id, svg);
}
watch();
