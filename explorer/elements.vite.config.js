import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { defineConfig } from 'vite';

import { readDocuments, serviceList, writeTypes } from './documents.js';
import { gzipped } from './gzipped.js';

// What the release before asked for: tabs that were open during an upgrade go on. A release writes it (CONTRIBUTING.md).
const PREVIOUS = new URL('../elements/previous.json', import.meta.url);

// Before anything is bundled: the constants that the elements import.
const documents = readDocuments();
writeTypes(documents);

// `english:board` is a part's texts in English, so that each part has its own and no others.
const english = {
  name: 'english',
  resolveId: (id) => (id.startsWith('english:') ? `\0${id}` : null),
  load(id) {
    if (!id.startsWith('\0english:')) return null;
    const texts = JSON.parse(readFileSync(new URL('../elements/texts/en.json', import.meta.url), 'utf8'));
    return `export default ${JSON.stringify(texts[id.slice('\0english:'.length)])}`;
  },
};

const REFUSAL = `async (part, ...fields) => {
  const refused = fields.filter((field) => field?.code && !part.texts[field.code]);
  if (refused[0]) await import('/refusals').then((module) => module.default(part, refused)).catch(() => {});
}`;

// `translated:admin/texts/de` is a file of texts in the order of its English one, without their names: a quarter of its
// size. Those of the elements bring what loads further ones: for writing, and for a refusal, once there is one.
const translated = {
  name: 'translated',
  resolveId: (id) => (id.startsWith('translated:') ? `\0${id}` : null),
  load(id) {
    if (!id.startsWith('\0translated:')) return null;
    const path = id.slice('\0translated:'.length);
    const [names, texts] = [path.replace(/\w+$/, 'en'), path].map((each) =>
      JSON.parse(readFileSync(new URL(`../elements/${each}.json`, import.meta.url), 'utf8')),
    );
    const inOrder = (english, others) => JSON.stringify(Object.keys(english).map((name) => others[name] ?? null));
    if (!path.startsWith('texts/')) return `export default ${inOrder(names, texts)}`;
    const parts = Object.keys(names).map((part) => `${JSON.stringify(part)}: ${inOrder(names[part], texts[part])}`);
    const writing = `() => import('translated:comments/${path}')`;
    return `export default { ${parts.join()}, further: { writing: ${writing}, refusal: ${REFUSAL} } }`;
  },
};

export default defineConfig({
  root: fileURLToPath(new URL('../elements', import.meta.url)),
  // The scripts find one another by relative addresses, wherever the service is.
  base: './',
  plugins: [
    gzipped,
    english,
    translated,
    {
      name: 'service-list',
      generateBundle() {
        this.emitFile({ type: 'asset', fileName: 'documents.json', source: serviceList(documents) });
        if (existsSync(PREVIOUS)) this.emitFile({ type: 'asset', fileName: 'previous.json', source: readFileSync(PREVIOUS) });
      },
    },
  ],
  oxc: { jsx: { runtime: 'classic', pragma: 'h', pure: false } },
  build: {
    outDir: '../server/http/pages/elements',
    emptyOutDir: true,
    target: ['chrome123', 'firefox121', 'safari17.5'],
    cssTarget: ['chrome123', 'firefox121', 'safari17.5'],
    minify: true,
    lib: { entry: 'elements.ts', formats: ['es'] },
    rolldownOptions: {
      output: {
        entryFileNames: 'elements.[hash].js',
        chunkFileNames: 'elements/[name].[hash].js',
        minify: true,
        comments: false,
      },
    },
  },
});
