import './nonce.js';
import 'graphiql/setup-workers/vite';

import { createGraphiQLFetcher } from '@graphiql/toolkit';
import { GraphiQL } from 'graphiql';
import { createRoot } from 'react-dom/client';

import { examples, headersHint } from './examples.js';
import './page.css';

const endpoint = new URL('/graphql', window.location.href);
const socket = new URL(endpoint);
socket.protocol = endpoint.protocol.replace('http', 'ws');

// Each subscription opens its own socket, so that its first message carries the headers of its tab.
const fetcher = createGraphiQLFetcher({
  url: endpoint.href,
  subscriptionUrl: socket.href,
  enableIncrementalDelivery: false,
});

createRoot(document.getElementById('explorer')).render(
  <GraphiQL
    fetcher={fetcher}
    defaultTabs={examples}
    defaultHeaders={headersHint}
    defaultEditorToolsVisibility="headers"
    inputValueDeprecation
    schemaDescription
  >
    <GraphiQL.Logo>Ringside</GraphiQL.Logo>
  </GraphiQL>,
);
