import { defineConfig, mergeConfig } from 'vite';

import elements from './elements.vite.config.js';

// The admin pages are a script of their own, built as the elements are: what pages of other sites load stays as small.
export default defineConfig(({ mode }) => {
  const config = mergeConfig(elements, { mode });
  config.plugins = elements.plugins.filter(({ name }) => name !== 'service-list');
  config.build.outDir = '../server/http/pages/admin';
  config.build.lib.entry = 'admin/admin.tsx';
  config.build.rolldownOptions.output.entryFileNames = 'admin.[hash].js';
  config.build.rolldownOptions.output.chunkFileNames = 'admin/[name].[hash].js';
  return config;
});
