// Words: lists, their words one by one, and which of them the next days show.

import { type View, h } from '../base/dom';
import { newKey } from '../base/part';
import { ask } from '../service';
import {
  ADD_WORDS, CREATE_WORD_LIST, DELETE_WORD_LIST, ONE_WORD, REMOVE_WORD, UPDATE_WORD, UPDATE_WORD_LIST, WORDS_OF_LIST, WORD_LISTS,
  WORD_LIST_CARD, type WordListCardData, type WordListsData,
} from '../generated/admin';
import { type Area, type Page, firstClick, isNamed } from './area';
import { Draft } from './draft';
import { Pages, Rows } from './pages';

type List = NonNullable<WordListCardData['wordList']>;
type Day = WordListCardData['upcomingWords'][number];
type Word = Day['word'];
type Settings = { name: string; level: string; public: boolean };
type Texts = {
  chinese: boolean; term: string; reading: string; simplified: string; traditional: string; pinyin: string;
  definition: string; example: string; audioUrl: string;
};
/** The word that is being changed, and the row in which it is: of a day, or of the list's words. */
type Edited = { word: Word; row: string; draft: Draft<Texts> };

const texts = (word: Word): Texts => ({
  chinese: word.chinese, term: word.term, reading: word.reading ?? '', simplified: word.term, traditional: word.traditional ?? '',
  pinyin: word.pinyin ?? '', definition: word.definition, example: word.example ?? '', audioUrl: word.audioUrl ?? '',
});

/** Its first field. */
const spelling = ({ values }: Draft<Texts>) => (values.chinese ? 'simplified' : 'term');

/** The texts as an input has them. */
function given({ chinese, term, reading, simplified, traditional, pinyin, definition, example, audioUrl }: Texts) {
  const spelled = chinese ? { simplified, traditional: traditional || null, pinyin: pinyin || null } : { term, reading: reading || null };
  return { ...spelled, definition, example: example || null, audioUrl: audioUrl || null };
}

export class Words implements Area {
  private lists: Pages<WordListsData['wordLists']['nodes'][number]>;
  private words!: Pages<Word>;
  private list: List | null = null;
  private days: Day[] = [];
  private wanted = '';
  private fresh: Draft<Settings>;
  /** What is typed about the lists, each by its list. */
  private settings: Record<string, Draft<Settings>> = {};
  private added: Record<string, Draft<Texts>> = {};
  private edited: Edited | null = null;
  private removed: Draft<Texts> | null = null;
  private drawn = new Rows<Word>();

  /** `addMany` leads to where a table of words is pasted. */
  constructor(private page: Page, private addMany: (list: List) => void) {
    this.lists = new Pages(page, 'list', (after) => ask(WORD_LISTS, { after }).then((data) => data.wordLists));
    this.fresh = this.emptyList();
  }

  async open() {
    await Promise.all([this.lists.open(), this.list && this.read(), this.list && this.words.open()]);
  }

  private emptyList() {
    return new Draft<Settings>(this.page, 'new-list', { name: '', level: '', public: true });
  }

  /** A word to be written as the list's others are. */
  private emptyWord() {
    const chinese = Boolean(this.words.nodes?.some(({ chinese }) => chinese));
    const empty = { term: '', reading: '', simplified: '', traditional: '', pinyin: '', definition: '', example: '', audioUrl: '' };
    return new Draft<Texts>(this.page, 'new-word', { chinese, ...empty });
  }

  // ── a list ──

  private async create(event: Event) {
    event.preventDefault();
    if (await this.wordComesFirst()) return;
    const { name, level, public: isPublic } = this.fresh.values;
    const made = await this.fresh.send(CREATE_WORD_LIST, { name, level: level ? Number(level) : null, public: isPublic });
    if (!made) return;
    this.fresh.clear();
    await this.lists.open();
    await this.choose(made.list.id);
    this.page.say(this.page.t('listMade', { name: made.list.name }));
  }

  private async choose(id: string) {
    if (await this.wordComesFirst()) return;
    this.wanted = id;
    const words = new Pages<Word>(this.page, 'word', (after) => ask(WORDS_OF_LIST, { list: id, after }).then((data) => data.wordList?.words));
    const [data] = await Promise.all([this.load(id), words.open()]);
    if (!data?.wordList || !words.nodes || this.wanted !== id) return;
    [this.words, this.edited, this.removed] = [words, null, null];
    if (!this.added[id]?.isChanged) this.added[id] = this.emptyWord();
    this.show(data);
    await this.page.focus('#chosen-list');
  }

  private load(id: string) {
    return this.page.insist(() => ask(WORD_LIST_CARD, { list: id }));
  }

  private async read() {
    const { id } = this.list!;
    const data = await this.load(id);
    if (data?.wordList && this.list?.id === id) this.show(data);
  }

  /** What is typed follows, so that a change of somebody else is seen before it is overwritten. */
  private show({ wordList, upcomingWords }: WordListCardData) {
    const { id, name, level, public: isPublic } = wordList!;
    const values = { name, level: level === null ? '' : String(level), public: isPublic };
    (this.settings[id] ??= new Draft<Settings>(this.page, 'list', values)).follow(values);
    [this.list, this.days] = [wordList, upcomingWords];
  }

  private async save(event: Event) {
    event.preventDefault();
    const { id, revision } = this.list!;
    const settings = this.settings[id]!;
    const { name, level, public: isPublic } = settings.values;
    const changed = { name, level: level ? Number(level) : null, public: isPublic, revision };
    if (!(await settings.send(UPDATE_WORD_LIST, { list: id, ...changed }, () => this.read()))) return;
    await this.lists.open();
    this.page.say(this.page.t('saved'));
  }

  private async delete(event: Event) {
    event.preventDefault();
    const { id, name } = this.list!;
    if (!isNamed(event, name)) return this.page.say(this.page.t('typeListName'));
    const answer = await this.page.mutate(DELETE_WORD_LIST, { input: { list: id, idempotencyKey: newKey() } });
    if (!answer) return;
    if (answer.code) return this.page.say(this.page.refusal(answer));
    if (this.list?.id === id) this.list = null;
    await this.lists.open();
    this.page.say(this.page.t('listDeleted', { name }));
    await this.page.focus('#lists');
  }

  // ── words ──

  private async add(event: Event) {
    event.preventDefault();
    const { id } = this.list!;
    const added = this.added[id]!;
    const answer = await added.send(ADD_WORDS, { list: id, words: [given(added.values)] });
    if (!answer) return;
    const { chinese } = added.values;
    added.clear();
    added.values.chinese = chinese;
    if (this.list?.id !== id) return this.saysAdded(answer.words[0]); // another list was chosen meanwhile
    await this.came(answer.words[0]);
    await this.page.focus(`#new-word-${chinese ? 'simplified' : 'term'}`);
  }

  private async addAgain(draft: Draft<Texts>) {
    const { id } = this.list!;
    const answer = await draft.send(ADD_WORDS, { list: id, words: [given(draft.values)] });
    if (!answer) return;
    if (this.list?.id !== id) return this.saysAdded(answer.words[0]);
    if (this.removed === draft) this.removed = null;
    await this.came(answer.words[0]);
    await this.page.focus('#words');
  }

  /** A new word is the last one, which is shown if all words are. */
  private async came(word: Word) {
    if (this.words.isWhole) this.words.nodes!.push(word);
    await this.read();
    this.saysAdded(word);
  }

  private saysAdded({ term }: Word) {
    this.page.say(this.page.t('wordAdded', { term }));
  }

  private async edit(word: Word, row: string) {
    if (await this.wordComesFirst()) return;
    const draft = new Draft<Texts>(this.page, 'word-edit', texts(word));
    this.edited = { word, row, draft };
    await this.page.focus(`#word-edit-${spelling(draft)}`);
  }

  /** Not if its row is gone, and its word. */
  private async wordComesFirst() {
    const { edited } = this;
    return edited?.draft.comesFirst(edited.word.term, spelling(edited.draft));
  }

  private async close() {
    const { row } = this.edited!;
    this.edited = null;
    await this.page.focus(`#${row}`);
  }

  private async change(event: Event, { word, draft }: Edited) {
    event.preventDefault();
    const answer = await draft.send(UPDATE_WORD, { word: word.id, ...given(draft.values), revision: word.revision }, () => this.reread(word.id));
    if (!answer) return;
    this.replace(answer.word);
    await this.read();
    this.page.say(this.page.t('saved'));
    if (this.edited?.draft === draft) await this.close();
  }

  private async reread(id: string) {
    const word = (await this.page.insist(() => ask(ONE_WORD, { word: id })))?.node as Word | null | undefined;
    if (!word || this.edited?.word.id !== id) return;
    this.edited.word = word;
    this.edited.draft.follow(texts(word));
    this.replace(word);
  }

  private replace(word: Word) {
    this.words.nodes = this.words.nodes!.map((one) => (one.id === word.id ? word : one));
  }

  private async remove(word: Word, row: string) {
    const { id: list } = this.list!;
    const answer = await this.page.mutate(REMOVE_WORD, { input: { word: word.id, idempotencyKey: newKey() } });
    if (!answer) return;
    if (answer.code) return this.page.say(this.page.refusal(answer));
    if (this.list?.id !== list) return this.page.say(this.page.t('wordRemoved', { term: word.term }));
    this.removed = new Draft<Texts>(this.page, 'removed', texts(word));
    this.words.nodes = this.words.nodes!.filter(({ id }) => id !== word.id);
    await this.read();
    this.page.say(this.page.t('wordRemoved', { term: word.term }));
    this.page.render();
    await this.page.focus(this.page.find(`#${row}`) ? `#${row}` : '#words');
  }

  // ── views ──

  view() {
    const { page } = this;
    return (
      <div class="stack">
        <div class="row between">
          <h2 id="lists" tabindex="-1">{page.t('words')}</h2>
          <button type="button" onclick={() => page.focus('#new-list-name')}>{page.t('aNewList')}</button>
        </div>
        {!this.lists.nodes ? this.lists.waiting() : (
          <ul class="row">
            {this.lists.nodes.map(({ id, name, public: isPublic }, place) => (
              <li key={id}><button id={`list-${place}`} type="button" aria-pressed={String(id === this.list?.id)} onclick={() => this.choose(id)}>
                <span dir="auto">{name}</span>{!isPublic && ` · ${page.t('private')}`}
              </button></li>
            ))}
          </ul>
        )}
        {this.lists.button()}
        <form class="row end" onsubmit={(event: Event) => this.create(event)}>
          {this.fresh.field('name', page.t('newList'), { required: true, dir: 'auto' })}
          {this.fresh.field('level', page.t('level'), { type: 'number', min: 0, max: 100 })}
          {this.fresh.field('public', page.t('public'), { type: 'checkbox' })}
          <button type="submit">{page.t('create')}</button>
        </form>
        {this.list && this.chosen(this.list)}
      </div>
    );
  }

  private chosen(list: List) {
    const { page } = this;
    return (
      <section class="stack" key={list.id}>
        <h2 id="chosen-list" tabindex="-1" dir="auto">{list.name}</h2>
        <div class="row between">
          <p class="soft">{page.t('listCounts', { n: list.wordCount, subscribers: list.subscriberCount })}</p>
          {list.public ? <button type="button" onclick={() => this.addMany(list)}>{page.t('imports')}</button> : <p class="soft">{page.t('privateList')}</p>}
        </div>
        <div class="two even">
          <div class="stack">{this.settingsForm(list)}{this.deleteForm()}</div>
          <form class="stack" onsubmit={(event: Event) => this.add(event)}>
            <h3>{page.t('addWord')}</h3>
            {this.fields(this.added[list.id]!)}
            <div class="row"><button type="submit">{page.t('add')}</button></div>
          </form>
        </div>
        {this.ahead()}
        {this.table()}
      </section>
    );
  }

  private settingsForm(list: List) {
    const { page } = this;
    const settings = this.settings[list.id]!;
    return (
      <form class="stack" onsubmit={(event: Event) => this.save(event)}>
        <h3>{page.t('settings')}</h3>
        {settings.field('name', page.t('name'), { required: true, dir: 'auto' })}
        {settings.field('level', page.t('level'), { type: 'number', min: 0, max: 100, hint: page.t('levelHint') })}
        {!list.public && settings.field('public', page.t('publishList'), { type: 'checkbox', hint: page.t('publishHint') })}
        <div class="row"><button type="submit" class="primary">{page.t('save')}</button></div>
      </form>
    );
  }

  private deleteForm() {
    const { page } = this;
    return (
      <form class="stack" onsubmit={(event: Event) => this.delete(event)}>
        <label>{page.t('deleteListName')}<input name="name" autocomplete="off" dir="auto" /></label>
        <div class="row"><button type="submit">{page.t('deleteList')}</button></div>
      </form>
    );
  }

  private fields(draft: Draft<Texts>): View[] {
    const shown = (name: keyof Texts, more = {}) => draft.field(name, this.page.t(name), { dir: 'auto', ...more });
    const spelled = draft.values.chinese
      ? [shown('simplified', { required: true, lang: 'zh-Hans' }), shown('traditional', { lang: 'zh-Hant' }), shown('pinyin')]
      : [shown('term', { required: true }), shown('reading')];
    const chinese = draft.id === 'new-word' ? [draft.field('chinese', this.page.t('chinese'), { type: 'checkbox' })] : [];
    return [...chinese, ...spelled, shown('definition', { required: true }), shown('example'), shown('audioUrl', { type: 'url', dir: 'ltr' })];
  }

  private ahead() {
    const { page, days } = this;
    return (
      <section class="stack">
        <h3>{page.t('ahead')}</h3>
        <p class="soft">{page.t('aheadWhat')}</p>
        {!days.length ? <p>{page.t('noWords')}</p> : this.rows(days.map(({ word, date }) => ({ word, row: `day-${date}`, date })))}
      </section>
    );
  }

  private table() {
    const { page, words, removed } = this;
    return (
      <section class="stack">
        <h3 id="words" tabindex="-1">{page.t('words')}</h3>
        {removed && <div class="row"><p>{page.t('wordRemoved', { term: removed.values.term })}</p><button type="button" onclick={() => this.addAgain(removed)}>{page.t('addAgain')}</button></div>}
        {!words.nodes ? words.waiting() : !words.nodes.length ? <p>{page.t('noWords')}</p> : this.rows(words.nodes.map((word, place) => ({ word, row: `word-${place}` })))}
        {words.button()}
      </section>
    );
  }

  private rows(rows: { word: Word; row: string; date?: string }[]) {
    return <ul>{rows.map(({ word, row, date }) => (this.isEdited(word, row) ? this.editForm(row) : this.drawn.of(word, row, () => this.row(word, row, date))))}</ul>;
  }

  private isEdited(word: Word, row: string) {
    const { edited } = this;
    // A row of the list's words moves if one before it is removed.
    return edited?.word.id === word.id && (edited.row === row || (edited.row.startsWith('word-') && row.startsWith('word-')));
  }

  private row(word: Word, row: string, date?: string) {
    const { page } = this;
    const { term, traditional, reading, definition, chinese } = word;
    const day = date && page.date(date, { weekday: 'short', day: 'numeric', month: 'short', timeZone: 'UTC' });
    const named = () => <span class="hidden"> {term}{day && `, ${day}`}</span>;
    return (
      <li key={date ?? word.id} class="row between word">
        <p>
          {day && <span class="soft">{day} · </span>}
          <strong><bdi lang={chinese && 'zh-Hans'}>{term}</bdi></strong>{traditional && traditional !== term && [' · ', <bdi lang="zh-Hant">{traditional}</bdi>]}
          {reading && [' · ', <bdi>{reading}</bdi>]} · <bdi>{definition}</bdi>
        </p>
        <div class="row">
          <button id={row} type="button" onclick={() => this.edit(word, row)}>{page.t('edit')}{named()}</button>
          <button type="button" class="plain" onclick={firstClick(() => this.remove(word, row))}>{page.t('remove')}{named()}</button>
        </div>
      </li>
    );
  }

  private editForm(row: string) {
    const { page } = this;
    const edited = this.edited!;
    return (
      <li key={`edit ${row}`} class="match">
        <form class="stack" onsubmit={(event: Event) => this.change(event, edited)}>
          {this.fields(edited.draft)}
          <div class="row">
            <button type="submit" class="primary">{page.t('save')}</button>
            <button type="button" onclick={() => this.close()}>{page.t('cancel')}</button>
          </div>
        </form>
      </li>
    );
  }
}
