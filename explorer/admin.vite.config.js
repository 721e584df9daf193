import { parse, print } from 'graphql';
import { mergeConfig } from 'vite';

import { readDocuments } from './documents.js';
import elements from './elements.vite.config.js';

// `documents:admin` is what the pages can show of what they sent, laid out to be read.
const shown = {
  name: 'documents',
  resolveId: (id) => (id === 'documents:admin' ? `\0${id}` : null),
  load(id) {
    if (id !== '\0documents:admin') return null;
    const ours = readDocuments().filter(({ file }) => file === 'admin.ts');
    return `export default ${JSON.stringify(Object.fromEntries(ours.map(({ id, text }) => [id, print(parse(text))])))}`;
  },
};

// The admin pages are a script of their own, built as the elements are: what pages of other sites load stays as small.
const shared = { ...elements, plugins: elements.plugins.filter(({ name }) => name !== 'service-list') };

export default mergeConfig(shared, {
  plugins: [shown],
  build: {
    outDir: '../server/http/pages/admin',
    lib: { entry: 'admin/admin.tsx' },
    rolldownOptions: { output: { entryFileNames: 'admin.[hash].js', chunkFileNames: 'admin/[name].[hash].js' } },
  },
});
