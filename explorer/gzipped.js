import { gzipSync } from 'node:zlib';

// Compressed once here, at the highest level, and not for each visitor.
export const gzipped = {
  name: 'gzipped',
  apply: 'build',
  generateBundle: {
    order: 'post',
    handler(_, bundle) {
      for (const [fileName, file] of Object.entries(bundle)) {
        if (fileName.startsWith('assets/') || fileName.endsWith('.js')) {
          const source = gzipSync(file.code ?? file.source, { level: 9 });
          this.emitFile({ type: 'asset', fileName: `${fileName}.gz`, source });
        }
      }
    },
  },
};
