import { defineConfig } from 'vite';

export default defineConfig({
  base: '/explorer/',
  // The server writes a fresh nonce in this word's place with each page.
  html: { cspNonce: '{nonce}' },
  build: {
    outDir: '../server/http/pages/explorer',
    emptyOutDir: true,
    // The notices of everything bundled travel with it.
    license: { fileName: 'licenses.md' },
    target: 'es2022',
    // Fonts stay files: inlined ones would need `font-src data:` in the policy.
    assetsInlineLimit: 0,
    // Monaco is one chunk of 2.8 MB, asked for after the page is there.
    chunkSizeWarningLimit: 3000,
    rolldownOptions: {
      // React's "use client" means nothing to a page without server components.
      checks: { moduleLevelDirective: false },
    },
  },
});
