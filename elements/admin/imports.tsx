// Adding many at once: contenders, events or words that an editor pastes or drops. A check tells what is wrong first.

import { h } from '../base/dom';
import { newKey } from '../base/part';
import { ask } from '../service';
import { IMPORT_CONTENDERS, IMPORT_EVENTS, IMPORT_WORDS, PLACES, type PlacesData } from '../generated/admin';
import type { Area, Page } from './area';

type Outcome = { added: number; problems: { line: number; message: string }[]; job: object | null };

const FORMS = {
  contenders: 'name,description,link\nCaptain Comet,Unbeaten since spring,https://example.com',
  events: '[{"name": "Finals", "season": "2027", "startsAt": "2027-05-01T19:00:00Z", "matches": [{"name": "Main", "teams": [{"members": ["Ada"]}, {"members": ["Bo"]}]}]}]',
  words: 'term,reading,definition\nHaus,,house',
};
type Kind = keyof typeof FORMS;

export class Imports implements Area {
  private places: PlacesData | null = null;
  private kind: Kind = 'contenders';
  private outcome: Outcome | null = null;
  private wasCheck = false;
  private text = '';
  private place = '';
  private svgs: Map<string, string> = new Map();

  constructor(private page: Page) {}

  /** Contenders of a board are what is added next. */
  addTo(board: string) {
    [this.kind, this.place, this.outcome] = ['contenders', board, null];
  }

  async open() {
    this.places = await this.page.insist(() => ask(PLACES, {}));
  }

  private async send(event: Event, dryRun: boolean) {
    const form = event.currentTarget as HTMLFormElement;
    const place = String(new FormData(form).get('place') ?? '');
    const text = this.kind === 'contenders' ? this.withPictures(this.text) : this.text;
    const input = { text, dryRun, idempotencyKey: newKey() };
    const answer =
      this.kind === 'contenders' ? await this.page.mutate(IMPORT_CONTENDERS, { input: { ...input, board: place } })
      : this.kind === 'events' ? await this.page.mutate(IMPORT_EVENTS, { input })
      : await this.page.mutate(IMPORT_WORDS, { input: { ...input, list: place } });
    if (!answer) return;
    if (answer.code) return this.page.say(this.page.refusal(answer));
    [this.outcome, this.wasCheck] = [answer, dryRun];
    this.page.say(this.page.t(dryRun ? 'wouldAdd' : 'added', { n: answer.added }));
  }

  /** A list of names becomes a table, with the pictures that were dropped under the same names. */
  private withPictures(text: string) {
    const lines = text.split('\n').map((line) => line.trim()).filter(Boolean);
    if (/^name\b/i.test(lines[0] ?? '')) return text;
    const quoted = (value: string) => `"${value.replaceAll('"', '""')}"`;
    return ['name,svg', ...lines.map((name) => `${quoted(name)},${quoted(this.svgs.get(name.toLowerCase()) ?? '')}`)].join('\n');
  }

  private async drop(files: FileList | null) {
    for (const file of files ?? []) {
      const text = await file.text();
      if (/\.svg$/i.test(file.name)) this.svgs.set(file.name.replace(/\.svg$/i, '').toLowerCase(), text);
      else this.text = text;
    }
    this.page.render();
  }

  view() {
    const { page } = this;
    const places = this.kind === 'contenders' ? this.places?.boards.nodes.map(({ slug, title }) => [slug, title]) : this.places?.wordLists.nodes.map(({ id, name }) => [id, name]);
    const submit = (event: Event) => {
      event.preventDefault();
      void this.send(event, (event as SubmitEvent).submitter?.getAttribute('value') === 'check');
    };
    return (
      <form class="stack" onsubmit={submit}>
        <h2>{page.t('imports')}</h2>
        <label>{page.t('what')}
          <select name="kind" onchange={(event: any) => { this.kind = event.currentTarget.value; this.outcome = null; page.render(); }}>
            {(Object.keys(FORMS) as Kind[]).map((kind) => <option value={kind} selected={kind === this.kind}>{page.t(kind)}</option>)}
          </select>
        </label>
        {this.kind !== 'events' && <label>{page.t('where')}<select name="place" onchange={(event: any) => { this.place = event.currentTarget.value; }}>{places?.map(([id, name]) => <option value={id} selected={id === this.place}>{name}</option>)}</select></label>}
        <label>{page.t('paste')}
          <textarea name="text" rows="12" value={this.text} placeholder={FORMS[this.kind]} oninput={(event: any) => { this.text = event.currentTarget.value; }} />
        </label>
        <label>{page.t('files')}<input type="file" multiple onchange={(event: any) => this.drop(event.currentTarget.files)} /></label>
        <div class="row">
          <button type="submit" value="check">{page.t('check')}</button>
          <button type="submit" value="add" class="primary">{page.t('add')}</button>
        </div>
        {this.outcome && (
          <section class="stack">
            <p>{page.t(this.wasCheck ? 'wouldAdd' : 'added', { n: this.outcome.added })} {this.outcome.job && page.t('goesOn')}</p>
            <ul>{this.outcome.problems.map(({ line, message }) => <li class="error">{page.t('line', { line })} {message}</li>)}</ul>
          </section>
        )}
      </form>
    );
  }
}
