import { defineConfig } from 'vite';

import { gzipped } from './gzipped.js';

export default defineConfig({
  base: '/explorer/',
  plugins: [gzipped],
  // The server replaces this placeholder with a fresh nonce for each page.
  html: { cspNonce: '{nonce}' },
  build: {
    outDir: '../server/http/pages/explorer',
    emptyOutDir: true,
    // The license notices of all bundled packages.
    license: { fileName: 'licenses.md' },
    target: 'es2022',
    // Keep fonts as files: inlined fonts would need `font-src data:` in the policy.
    assetsInlineLimit: 0,
    // Monaco is one chunk of 2.8 MB, loaded after the page.
    chunkSizeWarningLimit: 3000,
    rolldownOptions: {
      // React's "use client" has no effect on a page without server components.
      checks: { moduleLevelDirective: false },
    },
  },
});
