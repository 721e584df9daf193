// Monaco and GraphiQL create style elements at run time. The content security policy requires the page's nonce on each
// of them, and neither library has a setting for it, so this adds the nonce to every style element on creation.
const { nonce } = document.querySelector('meta[property="csp-nonce"]');
const createElement = document.createElement.bind(document);

document.createElement = (name, options) => {
  const element = createElement(name, options);
  if (element instanceof HTMLStyleElement) {
    element.nonce = nonce;
  }
  return element;
};
