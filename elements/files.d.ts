// Files that the build turns into modules.
declare module '*.css?inline' {
  const text: string;
  export default text;
}

declare module '*/challenge.js' {
  export function solve(challenge: { token: string; salt: string; target: string }): Promise<string>;
}

declare module 'english:*' {
  const texts: Record<string, string | Record<string, string>>;
  export default texts;
}

declare module 'translated:texts/*' {
  /** Of each part, in the order of its English texts. */
  const texts: Record<string, import('./base/part').Translated>;
  export default texts;
}

declare module 'translated:*' {
  const texts: import('./base/part').Translated;
  export default texts;
}

declare module 'documents:admin' {
  /** The text of each document of the admin pages by its id. */
  const texts: Record<string, string>;
  export default texts;
}
