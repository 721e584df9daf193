// A graphql-ws client that subscribes with a token that ends soon, and then has a new one:
// `node reconnect.mjs ws://127.0.0.1:8000/graphql <first token> <second token>` prints what happens, a JSON line each.
import { createClient } from "graphql-ws";

const [, , url, ...tokens] = process.argv;
let connections = 0;
const client = createClient({
  url,
  connectionParams: () => ({ Authorization: `Bearer ${tokens[connections]}` }),
  retryWait: async () => {},
  on: {
    connected: () => {
      connections += 1;
      console.log(JSON.stringify({ event: "connected" }));
      if (connections === tokens.length) process.exit(0);
    },
    closed: ({ code, reason }) => console.log(JSON.stringify({ event: "closed", code, reason })),
  },
});
client.subscribe(
  { query: 'subscription { commentPosted(product: "reconnect") { id } }' },
  { next: () => {}, error: (error) => console.log(JSON.stringify({ event: "error", error })), complete: () => {} },
);
