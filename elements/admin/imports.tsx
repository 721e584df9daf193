// Adding many at once: contenders, events or words that an editor pastes or drops. A check tells what is wrong first.

import { h } from '../base/dom';
import { ask } from '../service';
import { BOARDS, type BoardsData, IMPORT_CONTENDERS, IMPORT_EVENTS, IMPORT_WORDS, WORD_LISTS, type WordListsData } from '../generated/admin';
import { type Area, type Page, anew, ended, field } from './area';
import { parseSeason } from './cards';
import { Draft } from './draft';
import { Pages } from './pages';

type Problem = { line: number; message: string };
type Outcome = { added: number; problems: { at: string; message: string }[]; job: object | null; read: string[][] };

const FORMS = {
  contenders: 'name,description,link\nCaptain Comet,Unbeaten since spring,https://example.com',
  events: 'Finals | 2027 | 2027-05-01 19:00\nAda v Bo\nMain: Cy & Dee v Eve | 2',
  words: 'term,reading,definition\nHaus,,house',
};
type Kind = keyof typeof FORMS;
const HINTS: Partial<Record<Kind, string>> = { events: 'seasonHint', words: 'wordsHint' };
const DOCUMENTS = { contenders: IMPORT_CONTENDERS, events: IMPORT_EVENTS, words: IMPORT_WORDS };

/** The first line of a table of words, which names the columns. */
const HEADER = /^\W*(term|simplified)\W*[,;\t]|(?=.*\bdefinition\b).*\b(term|simplified)\b/i;
/** What parts a word from its meaning: the first of these that a line has, since both may have commas. */
const BETWEEN = [/\t/, /\s[=–—-]\s/, /[;,]/, /[؛،；，]/];
/** So many words are shown as they are read, after a check. */
const FEW = 5;

/** A name by which a picture is found. Some systems store an accent apart from its letter. */
const bare = (name: string) => name.trim().normalize('NFC').toLowerCase();
const quoted = (value: string) => `"${value.trim().replaceAll('"', '""')}"`;

/** A table with this header and a row for each line, so that the service's lines are one more than those that were typed. */
const table = (header: string, text: string, cells: (line: string) => string[]) =>
  [header, ...text.split('\n').map((line) => (line.trim() ? cells(line).map(quoted).join(',') : ''))].join('\n');

/** What parts the cells of a table, as the service reads it: that of which the first line has most. */
function delimiterOf(text: string) {
  const [header] = text.split(/[\r\n]/, 1);
  const count = (one: string) => header!.split(one).length;
  return [',', ';', '\t'].reduce((most, one) => (count(one) > count(most) ? one : most));
}

/** The rows of a table as they are written, each with its cells. A quoted cell may have lines. */
function rowsOf(text: string, delimiter: string) {
  const cell = new RegExp(`("(?:[^"]|"")*"|[^${delimiter}\\r\\n]*)(${delimiter}|\\r\\n?|\\n|$)`, 'gy');
  const rows = [{ written: '', cells: [] as string[] }];
  for (const [written, value, end] of text.matchAll(cell)) {
    const row = rows.at(-1)!;
    row.written += written;
    row.cells.push(value!.startsWith('"') ? value!.slice(1, -1).replaceAll('""', '"') : value!);
    if (end !== delimiter) rows.push({ written: '', cells: [] });
  }
  return rows;
}

/** The names in the first line of a table. */
const columnsOf = (text: string) => rowsOf(text, delimiterOf(text))[0]!.cells.map((cell) => cell.trim().toLowerCase());

function wordCells(line: string) {
  const between = BETWEEN.find((one) => one.test(line));
  if (!between) return [line, ''];
  const { index, 0: found } = between.exec(line)!;
  return [line.slice(0, index), line.slice(index + found.length)];
}

/** The words of a table, with their meanings. */
function tableCells(text: string) {
  const columns = columnsOf(text);
  const [, ...rows] = rowsOf(text, delimiterOf(text));
  return rows.map(({ cells }) => {
    const cell = (name: string) => (cells[columns.indexOf(name)] ?? '').trim();
    return [cell('term') || cell('simplified'), cell('definition')];
  });
}

/** A file's text, in UTF-8, or in UTF-16 as spreadsheets save it; null if it has none. */
async function textOf(file: File) {
  const bytes = await file.arrayBuffer();
  const mark = new Uint8Array(bytes.slice(0, 2)).join();
  try {
    return new TextDecoder({ '255,254': 'utf-16le', '254,255': 'utf-16be' }[mark], { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** Whether files are dragged, and not text, which is the field's. */
const hasFiles = ({ dataTransfer }: DragEvent) => dataTransfer!.types.includes('Files');

/** The files that something dropped is, or has in it. */
async function filesOf(entry: FileSystemEntry | null): Promise<File[]> {
  if (entry?.isFile) return [await new Promise<File>((take, refuse) => (entry as FileSystemFileEntry).file(take, refuse))];
  if (!entry?.isDirectory) return [];
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const found: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((take, refuse) => reader.readEntries(take, refuse));
    if (!some.length) return (await Promise.all(found.map(filesOf))).flat();
    found.push(...some); // a hundred at a time
  }
}

export class Imports implements Area {
  private boards: Pages<BoardsData['boards']['nodes'][number]>;
  private lists: Pages<WordListsData['wordLists']['nodes'][number]>;
  private kind: Kind = 'contenders';
  private outcome: Outcome | null = null;
  private wasCheck = false;
  private draft: Draft<{ text: string }>;
  private place = '';
  /** What is added to next, which may not be among the places that were read. */
  private led: [string, string] | null = null;
  private isJustLed = false;
  private svgs: Map<string, string> = new Map();

  constructor(private page: Page) {
    this.draft = new Draft(page, 'import', { text: '' });
    this.boards = new Pages(page, 'place', (after) => ask(BOARDS, { after }).then((data) => data.boards));
    this.lists = new Pages(page, 'place', (after) => ask(WORD_LISTS, { after }).then((data) => data.wordLists));
  }

  /** Contenders of a board, or words of a list, are what is added next. */
  addTo(kind: Kind, id: string, name: string) {
    [this.kind, this.place, this.led, this.outcome, this.isJustLed] = [kind, id, [id, name], null, true];
  }

  async open() {
    await Promise.all([this.boards.open(), this.lists.open()]);
    if (this.isJustLed) await this.page.focus('#import-text');
    this.isJustLed = false;
  }

  private async send(event: Event, dryRun: boolean) {
    const place = field(event, 'place');
    const { text, at } = this.asSent();
    const read = dryRun && this.kind === 'words' ? this.firstWords() : [];
    const into = { contenders: { board: place }, events: {}, words: { list: place } }[this.kind];
    const answer = await this.draft.send(DOCUMENTS[this.kind], { ...into, text, dryRun });
    if (!answer) return;
    const problems = answer.problems.map(({ line, message }: Problem) => ({ at: at(line, message), message }));
    const outcome: Outcome = (this.outcome = { ...answer, problems, read });
    this.wasCheck = dryRun;
    this.page.say(this.page.t(dryRun ? 'wouldAdd' : 'added', { n: answer.added }));
    if (!answer.job) return;
    outcome.added = (await ended(this.page, answer.job.id))?.done ?? outcome.added;
    outcome.job = null;
    this.page.render();
  }

  /**
   * What the service reads, and at which of the typed lines, or events of a season file, a problem is. A list becomes a
   * table: names with the pictures that were dropped under the same names, which a table of contenders gets, too, or
   * words with their meanings. Cards become a season file.
   */
  private asSent(): { text: string; at: (line: number, message: string) => string } {
    const { text, blank } = this.typed();
    const at = (line: number) => this.page.t('line', { line: line + blank });
    const before = (line: number) => at(line - 1);
    if (this.kind === 'events') {
      if (/^\s*[{[]/.test(text)) return { text, at: (n) => this.page.t('eventOfFile', { n }) };
      const season = parseSeason(text);
      return { text: season.text, at: (event, message) => at(season.lineOf(event, message)) };
    }
    if (this.isListOfWords(text)) return { text: table('term,definition', text, wordCells), at: before };
    if (this.kind === 'words') return { text, at };
    if (columnsOf(text).includes('name')) return { text: this.withPictures(text), at };
    return { text: table('name,svg', text, (name) => [name, this.svg(name)]), at: before };
  }

  /** What was typed, from its first line that is not blank; and how many are before it. */
  private typed() {
    const { text } = this.draft.values;
    const [before] = /^(\s*[\r\n])?/.exec(text)!;
    return { text: text.slice(before.length), blank: before.split(/\r\n?|\n/).length - 1 };
  }

  /** Rather than a table of them. */
  private isListOfWords(text: string) {
    return this.kind === 'words' && !HEADER.test(text.split('\n')[0]!);
  }

  /** With their meanings, as the service reads them. */
  private firstWords() {
    const { text } = this.typed();
    const words = this.isListOfWords(text) ? text.split('\n').map(wordCells) : tableCells(text);
    return words.filter(([, meaning]) => meaning).slice(0, FEW);
  }

  private svg = (name: string) => (this.svgs.get(bare(name)) ?? '').replace(/\s*\n\s*/g, ' ');

  /** A table with a column for the pictures, unless it has one. It is the first, since a row may be shorter than others. */
  private withPictures(text: string) {
    const delimiter = delimiterOf(text);
    const [header, ...rows] = rowsOf(text, delimiter);
    const columns = columnsOf(text);
    if (!this.svgs.size || columns.includes('svg')) return text;
    const place = columns.indexOf('name');
    const pictured = rows.map(({ written, cells }) => (written.trim() ? quoted(this.svg(cells[place] ?? '')) + delimiter : '') + written);
    return ['svg', delimiter, header!.written, ...pictured].join('');
  }

  /** Files, or a folder with all that is in it, wherever in the form: the browser would leave the page for them. */
  private async dropped(event: DragEvent) {
    if (!hasFiles(event)) return;
    event.preventDefault();
    const entries = [...event.dataTransfer!.items].map((item) => item.webkitGetAsEntry());
    await this.take((await Promise.all(entries.map(filesOf))).flat(), entries.some((entry) => entry?.isDirectory));
  }

  /** Of a folder only pictures; nor does a text among pictures take the place of what was typed. */
  private async take(files: File[], isFolder: boolean) {
    const others: string[] = [];
    const isPicture = ({ name }: File) => /\.svg$/i.test(name);
    const takesTexts = !isFolder && (!files.some(isPicture) || !this.draft.values.text.trim());
    for (const file of files) {
      const text = await textOf(file);
      if (isPicture(file)) this.svgs.set(bare(file.name.replace(/\.svg$/i, '')), text ?? (await file.text()));
      else if (file.name.startsWith('.')) continue; // of the system that the folder is from
      else if (text === null || !takesTexts) others.push(file.name);
      else this.draft.values.text = text;
    }
    this.page.say(others.length ? this.page.t(takesTexts ? 'leftOut' : 'onlyPictures', { names: others.join(', ') }) : '');
  }

  /** Where they can be added: id and name. */
  private options(): string[][] {
    const { led, boards, lists } = this;
    const found = this.kind === 'contenders' ? (boards.nodes ?? []).map(({ slug, title }) => [slug, title]) : (lists.nodes ?? []).filter((list) => list.public).map(({ id, name }) => [id, name]);
    return led && !found.some(([id]) => id === led[0]) ? [led, ...found] : found;
  }

  view() {
    const { page } = this;
    const submit = (event: Event) => {
      event.preventDefault();
      void this.send(event, (event as SubmitEvent).submitter?.getAttribute('value') === 'check');
    };
    const choose = ({ currentTarget }: any) => {
      [this.kind, this.place, this.led, this.outcome] = [currentTarget.value, '', null, null];
      page.render();
    };
    const options = this.options();
    const isNowhere = this.kind === 'words' && this.lists.isWhole && !options.length;
    return (
      <form class="stack" onsubmit={submit} ondragover={(event: DragEvent) => hasFiles(event) && event.preventDefault()} ondrop={(event: DragEvent) => this.dropped(event)}>
        <h2>{page.t('imports')}</h2>
        <label>{page.t('what')}
          <select name="kind" onchange={choose}>
            {(Object.keys(FORMS) as Kind[]).map((kind) => <option value={kind} selected={kind === this.kind}>{page.t(kind)}</option>)}
          </select>
        </label>
        {isNowhere && <p>{page.t('noLists')}</p>}
        {this.kind !== 'events' && !isNowhere && <label>{page.t('where')}<select name="place" id="place" onchange={(event: any) => { this.place = event.currentTarget.value; }}>{options.map(([id, name]) => <option value={id} selected={id === this.place}>{name}</option>)}</select></label>}
        {this.kind !== 'events' && (this.kind === 'words' ? this.lists : this.boards).button()}
        {this.draft.field('text', page.t('paste'), { tag: 'textarea', rows: 12, dir: 'auto', placeholder: FORMS[this.kind], hint: HINTS[this.kind] && page.t(HINTS[this.kind]!) })}
        <div class="row">
          <label>{page.t('files')}<input type="file" multiple onclick={anew} onchange={(event: any) => this.take([...event.currentTarget.files], false)} /></label>
          {this.kind === 'contenders' && <label>{page.t('folder')}<input type="file" webkitdirectory multiple onclick={anew} onchange={(event: any) => this.take([...event.currentTarget.files], true)} /></label>}
        </div>
        {this.kind === 'contenders' && this.svgs.size > 0 && <p class="soft">{page.t('pictures', { n: this.svgs.size })}</p>}
        {!isNowhere && (
          <div class="row">
            <button type="submit" value="check">{page.t('check')}</button>
            <button type="submit" value="add" class="primary">{page.t('add')}</button>
          </div>
        )}
        {this.outcome && this.result(this.outcome)}
      </form>
    );
  }

  private result({ added, job, problems, read }: Outcome) {
    const { page } = this;
    return (
      <section class="stack">
        <p>{page.t(this.wasCheck ? 'wouldAdd' : 'added', { n: added })} {job && page.t('goesOn')}</p>
        <ul>{problems.map(({ at, message }) => <li class="error">{at} {message}</li>)}</ul>
        {read.length > 0 && <p>{page.t('firstRead')}</p>}
        {read.length > 0 && <ul>{read.map(([word, meaning]) => <li><bdi>{word!.trim()}</bdi> · <bdi>{meaning!.trim()}</bdi></li>)}</ul>}
      </section>
    );
  }
}
