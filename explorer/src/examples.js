// One tab for each file in examples/, in the order in which a newcomer meets the parts.
const order = ['people', 'voting', 'pickem', 'comments', 'vocabulary'];

const files = import.meta.glob('../../examples/*.graphql', { query: '?raw', import: 'default', eager: true });

// The headers editor takes comments, so nothing is sent until somebody takes the two slashes away.
export const headersHint = `{
  // ringside token --user ada-abara   prints a token
  // "Authorization": "Bearer <token>"
}
`;

export const examples = order
  .map((part) => files[`../../examples/${part}.graphql`])
  .filter(Boolean)
  .map((query) => ({ query, headers: headersHint }));
