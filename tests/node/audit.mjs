// Runs graphql-http's public audit: `node audit.mjs http://127.0.0.1:8000/graphql` prints one JSON line per check.
import { auditServer } from "graphql-http";

const results = await auditServer({ url: process.argv[2], fetchFn: fetch });
for (const { id, name, status, reason } of results) {
  console.log(JSON.stringify({ id, name, status, reason }));
}
