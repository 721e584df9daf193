// One tab for each file in examples/, in the order a newcomer should read them.
const order = [
  'welcome', 'people', 'sign-in', 'voting', 'pickem', 'leagues', 'comments', 'vocabulary',
  'owner-board', 'owner-event', 'owner-results', 'owner-comments', 'owner-words', 'owner-members', 'owner-machines', 'owner-figures',
];

const files = import.meta.glob('../../examples/*.graphql', { query: '?raw', import: 'default', eager: true });

// The headers editor accepts comments, so no header is sent until you remove the two slashes.
export const headersHint = `{
  // ringside token --user ada-abara   prints a token
  // "Authorization": "Bearer <token>"
}
`;

export const examples = order
  .map((part) => files[`../../examples/${part}.graphql`])
  .filter(Boolean)
  .map((query) => ({ query, headers: headersHint }));
