// What graphql-codegen's client preset makes of operations: `node codegen.mjs SCHEMA FOLDER < operations.graphql` writes
// typed documents and the manifest of persisted ones, as the preset's command line does with the guide's configuration,
// which is in FOLDER/codegen.ts.
import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { codegen } from "@graphql-codegen/core";
import { preset } from "@graphql-codegen/client-preset";
import { parse } from "graphql";

const [, , schema, folder] = process.argv;
const [[path, output]] = Object.entries((await import(`${folder}/codegen.ts`)).default.generates);
const { config, documentTransforms, presetConfig } = output;
const rawSDL = readFileSync(0, "utf8");
const files = await preset.buildGeneratesSection({
  baseOutputDir: `${folder}/${path}`,
  schema: parse(readFileSync(schema, "utf8")),
  documents: [{ location: "operations.graphql", document: parse(rawSDL), rawSDL }],
  config: { ...config, useTypeImports: true },
  documentTransforms: documentTransforms.map((transformObject, name) => ({ name, transformObject })),
  presetConfig,
  plugins: [],
  pluginMap: {},
  pluginContext: {},
});
for (const file of files) {
  await mkdir(dirname(file.filename), { recursive: true });
  await writeFile(file.filename, await codegen(file));
}
