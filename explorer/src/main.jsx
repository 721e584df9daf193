import './nonce.js';
import 'graphiql/setup-workers/vite';

import { createGraphiQLFetcher } from '@graphiql/toolkit';
import { GraphiQL } from 'graphiql';
import { createRoot } from 'react-dom/client';

import { examples, headersHint } from './examples.js';
import { ViewerMenu, viewerHeaders } from './viewers.jsx';
import './page.css';

const endpoint = new URL('/graphql', window.location.href);
const socket = new URL(endpoint);
socket.protocol = endpoint.protocol.replace('http', 'ws');

// Each subscription opens its own socket, so that its first message carries the headers of its tab.
const send = createGraphiQLFetcher({
  url: endpoint.href,
  subscriptionUrl: socket.href,
  enableIncrementalDelivery: false,
});

// GraphiQL learns the names of operations a moment after a change: until then it may name one that is gone.
const withoutUnknownName = ({ operationName, ...others }) =>
  new RegExp(`\\b${operationName}\\b`).test(others.query) ? { operationName, ...others } : others;

// The headers of the tab are more specific than the menu.
const fetcher = (parameters, options = {}) =>
  send(withoutUnknownName(parameters), { ...options, headers: { ...viewerHeaders(), ...options.headers } });

createRoot(document.getElementById('explorer')).render(
  <GraphiQL
    fetcher={fetcher}
    defaultTabs={examples}
    defaultHeaders={headersHint}
    defaultEditorToolsVisibility={window.innerWidth >= 800 && 'headers'}
    inputValueDeprecation
    schemaDescription
  >
    <GraphiQL.Logo>
      <h1>Ringside</h1>
      <ViewerMenu />
    </GraphiQL.Logo>
    <GraphiQL.Footer>
      <a className="licenses" href="/explorer/licenses.txt" target="_blank">
        Licences
      </a>
    </GraphiQL.Footer>
  </GraphiQL>,
);
