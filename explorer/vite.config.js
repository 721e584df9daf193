import { gzipSync } from 'node:zlib';

import { defineConfig } from 'vite';

// Compressed once here, at the highest level, and not for each visitor.
const gzipped = {
  name: 'gzipped',
  apply: 'build',
  generateBundle: {
    order: 'post',
    handler(_, bundle) {
      for (const [fileName, file] of Object.entries(bundle)) {
        if (fileName.startsWith('assets/')) {
          const source = gzipSync(file.code ?? file.source, { level: 9 });
          this.emitFile({ type: 'asset', fileName: `${fileName}.gz`, source });
        }
      }
    },
  },
};

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
