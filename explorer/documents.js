// The documents of the elements: read from elements/documents/*.graphql, checked against schema.graphql, and written
// for two readers. `elements/generated/` has a module for each file, with a constant for each operation: the id by
// which the service knows it, the beginning of its hash, and the types of its variables and its answer.
// `documents.json` is the service's list of them.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';

import {
  buildSchema,
  getNamedType,
  isAbstractType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  Kind,
  parse,
  print,
  stripIgnoredCharacters,
  typeFromAST,
  validate,
  visit,
} from 'graphql';

const FOLDER = new URL('../elements/documents/', import.meta.url);
const GENERATED = new URL('../elements/generated/', import.meta.url);
const schema = buildSchema(readFileSync(new URL('../schema/schema.graphql', import.meta.url), 'utf8'));
const SCALARS = { Int: 'number', Float: 'number', Boolean: 'boolean' };
// Of the few documents of this build no two begin alike, and each digit is one that every page loads.
const DIGITS = 10;
// What a first paint needs (q) is asked without saying who asks, unless a member is signed in; another query (p) is
// personal.
const LETTERS = { query: 'p', mutation: 'm', subscription: 's' };
const OF_FIRST_PAINT = /\bfirst\.graphql$/;

/** Every operation by its name, with the text that is sent and hashed. */
export function readDocuments() {
  const names = readdirSync(FOLDER).sort();
  const files = names.map((name) => [name, parse(readFileSync(new URL(name, FOLDER), 'utf8')).definitions]);
  const all = { kind: Kind.DOCUMENT, definitions: files.flatMap(([, definitions]) => definitions) };
  const errors = validate(schema, all);
  if (errors.length) throw new Error(errors.map(String).join('\n\n'));
  const fragments = new Map(all.definitions.filter(isFragment).map((one) => [one.name.value, one]));
  const operations = files.flatMap(([file, definitions]) =>
    definitions.filter((one) => one.kind === Kind.OPERATION_DEFINITION).map((operation) => [file, operation]),
  );
  return operations.map(([file, operation]) => {
    const text = stripIgnoredCharacters([operation, ...spread(operation, fragments)].map(print).join('\n'));
    const starts = operation.selectionSet.selections.some((field) => field.name?.value === 'startVisit');
    return {
      file: file.replace('.graphql', '.ts'),
      name: operation.name.value,
      text,
      id: createHash('sha256').update(text).digest('hex').slice(0, DIGITS),
      kind: starts ? 'v' : OF_FIRST_PAINT.test(file) ? 'q' : LETTERS[operation.operation],
      types: types(operation, fragments),
    };
  });
}

/** What the service reads: the text of each document by its id. */
export const serviceList = (documents) => JSON.stringify(Object.fromEntries(documents.map(({ id, text }) => [id, text])));

/** Writes the constants and their types, if they have changed. */
export function writeTypes(documents) {
  const constant = ({ name, kind, id, types: [data, variables] }) =>
    `export type ${name}Data = ${data};\nexport const ${constantName(name)} = '${kind}${id}' as Doc<${name}Data, ${variables}>;\n`;
  mkdirSync(GENERATED, { recursive: true });
  for (const [file, inFile] of Map.groupBy(documents, (document) => document.file)) {
    const text = `import type { Doc } from '../service';\n\n${inFile.map(constant).join('\n')}`;
    const path = new URL(file, GENERATED);
    if (!existsSync(path) || readFileSync(path, 'utf8') !== text) writeFileSync(path, text);
  }
}

const isFragment = (one) => one.kind === Kind.FRAGMENT_DEFINITION;
const constantName = (name) => name.replace(/(?<=[a-z])[A-Z]/g, '_$&').toUpperCase();

/** The fragments that a definition needs, each once. */
function spread(definition, fragments, found = new Set()) {
  visit(definition, {
    FragmentSpread({ name }) {
      const fragment = fragments.get(name.value);
      if (found.has(fragment)) return;
      found.add(fragment);
      spread(fragment, fragments, found);
    },
  });
  return found;
}

// ── types ──

function types(operation, fragments) {
  const root = schema.getRootType(operation.operation);
  const variables = (operation.variableDefinitions ?? []).map(({ variable, type, defaultValue }) => {
    const isOptional = type.kind !== Kind.NON_NULL_TYPE || defaultValue;
    return `${variable.name.value}${isOptional ? '?' : ''}: ${input(typeFromAST(schema, type))}`;
  });
  return [object(root, [operation.selectionSet], fragments), `{ ${variables.join('; ')} }`];
}

function input(type) {
  if (isNonNullType(type)) return input(type.ofType).replace(/ \| null$/, '');
  if (isListType(type)) return `(${input(type.ofType)})[] | null`;
  if (isEnumType(type)) return `${literals(type)} | null`;
  if (isInputObjectType(type)) {
    const fields = Object.values(type.getFields()).map((field) => `${field.name}${isNonNullType(field.type) && field.defaultValue === undefined ? '' : '?'}: ${input(field.type)}`);
    return `{ ${fields.join('; ')} } | null`;
  }
  return `${SCALARS[type.name] ?? 'string'} | null`;
}

const literals = (type) => type.getValues().map(({ name }) => `'${name}'`).join(' | ');

function output(type, selections, fragments) {
  if (isNonNullType(type)) return output(type.ofType, selections, fragments).replace(/ \| null$/, '');
  if (isListType(type)) return `(${output(type.ofType, selections, fragments)})[] | null`;
  const named = getNamedType(type);
  if (isEnumType(named)) return `${literals(named)} | null`;
  if (!selections.length) return `${SCALARS[named.name] ?? 'string'} | null`;
  if (!isAbstractType(named)) return `${object(named, selections, fragments)} | null`;
  return `${schema.getPossibleTypes(named).map((one) => object(one, selections, fragments)).join(' | ')} | null`;
}

/** The fields that selection sets ask of an object type. A field that only other types of a union have is undefined. */
function object(type, sets, fragments) {
  const fields = new Map();
  const others = new Set();
  const collect = (set, optional) => {
    for (const one of set.selections) {
      if (one.kind === Kind.FIELD) {
        const key = (one.alias ?? one.name).value;
        const found = fields.get(key) ?? { name: one.name.value, sets: [], optional: true };
        found.optional &&= optional || Boolean(one.directives?.length);
        if (one.selectionSet) found.sets.push(one.selectionSet);
        fields.set(key, found);
      } else {
        const fragment = one.kind === Kind.INLINE_FRAGMENT ? one : fragments.get(one.name.value);
        const on = fragment.typeCondition?.name.value ?? type.name;
        const fits = on === type.name || (isAbstractType(schema.getType(on)) && schema.isSubType(schema.getType(on), type));
        if (fits) collect(fragment.selectionSet, optional || Boolean(one.directives?.length));
        else fragment.selectionSet.selections.forEach((field) => field.name && others.add((field.alias ?? field.name).value));
      }
    }
  };
  sets.forEach((set) => collect(set, false));
  const own = [...fields].map(([key, { name, sets: inner, optional }]) => {
    const of = name === '__typename' ? `'${type.name}'` : output(type.getFields()[name].type, inner, fragments);
    return `${key}${optional ? '?' : ''}: ${of}`;
  });
  const absent = [...others].filter((key) => !fields.has(key)).map((key) => `${key}?: undefined`);
  return `{ ${[...own, ...absent].join('; ')} }`;
}
