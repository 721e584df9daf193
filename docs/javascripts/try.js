// The page that shows an element with its attributes, against a service of the reader's own.
const ATTRIBUTES = {
  board: { board: 'main' },
  event: { event: 'next', season: '' },
  standings: { season: '', league: '' },
  word: { list: '', quiz: '' },
  comments: { product: 'ringside-tee', languages: '', order: '', rated: '', proof: '' },
  'sign-in': {},
};
const COMMON = { lang: '', theme: '' };
const EVENTS = [
  'vote', 'prediction', 'league-joined', 'quiz', 'review', 'subscription', 'sign-in', 'signed-in',
  'comment', 'comment-deleted', 'comment-reported', 'comment-helpful',
];

const form = document.getElementById('try');
const tried = document.getElementById('tried');
const fields = form.querySelector('div');

function choose() {
  const attributes = { ...ATTRIBUTES[form.elements.element.value], ...COMMON };
  fields.replaceChildren(
    ...Object.entries(attributes).map(([name, value]) => {
      const label = document.createElement('label');
      const input = Object.assign(document.createElement('input'), { name: `attribute ${name}`, value });
      label.append(`${name} `, input, ' ');
      return label;
    }),
  );
  show();
}

function show() {
  const element = document.createElement(`ringside-${form.elements.element.value}`);
  for (const { name, value } of fields.querySelectorAll('input')) if (value) element.setAttribute(name.split(' ')[1], value);
  const service = form.elements.service.value.replace(/\/$/, '');
  form.querySelector('code').textContent = `<script type="module" src="${service}/elements.js"></script>\n${element.outerHTML}`;
  tried.replaceChildren(element);
  import(`${service}/elements.js`).catch(() => tried.append(`There is no service at ${service}.`));
}

form.elements.element.append(...Object.keys(ATTRIBUTES).map((name) => new Option(`ringside-${name}`, name)));
form.elements.element.addEventListener('change', choose);
form.addEventListener('change', ({ target }) => target !== form.elements.element && show());
form.addEventListener('submit', (event) => event.preventDefault());
for (const name of EVENTS) {
  tried.addEventListener(`ringside-${name}`, ({ type, detail }) => {
    document.querySelector('output').textContent = `${type} ${JSON.stringify(detail)}`;
  });
}
choose();
