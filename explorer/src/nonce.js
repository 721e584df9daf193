// Monaco and GraphiQL write style elements while they run. The content security policy wants the page's nonce on
// each of them, and neither has a setting for it, so elements get it as they are made.
const { nonce } = document.querySelector('meta[property="csp-nonce"]');
const createElement = document.createElement.bind(document);

document.createElement = (name, options) => {
  const element = createElement(name, options);
  if (element instanceof HTMLStyleElement) {
    element.nonce = nonce;
  }
  return element;
};
