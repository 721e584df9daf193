// Rules that hold comments: they are tried on the latest ones, and saved as one list.

import { h } from '../base/dom';
import { newKey } from '../base/part';
import { HOLD_RULES, type HoldRulesData, PREVIEW_HOLD_RULES, type PreviewHoldRulesData, SET_HOLD_RULES } from '../generated/admin';
import { ask } from '../service';
import { type Area, type Page, firstClick } from './area';
import { Draft } from './draft';
import { Pages, whole } from './pages';

type Rule = HoldRulesData['holdRules']['rules'][number];
type Held = PreviewHoldRulesData['previewHoldRules'];
type Typed = { name: string; language: string; words: string; links: string; firstComments: string; perHour: string; guests: boolean };

const NUMBERS = ['links', 'firstComments', 'perHour'] as const;
/** Of those that would be held, as many as somebody looks at. */
const SHOWN = 50;
const NO_RULE: Rule = { name: '', language: null, words: [], links: null, firstComments: null, perHour: null, guests: false };

const typed = ({ words, language, links, firstComments, perHour, ...rule }: Rule): Typed => ({
  ...rule,
  language: language ?? '',
  words: words.join(', '),
  links: String(links ?? ''),
  firstComments: String(firstComments ?? ''),
  perHour: String(perHour ?? ''),
});

const given = ({ name, language, words, guests, ...numbers }: Typed) => ({
  name,
  guests,
  language: language.trim() || null,
  words: words.split(/[,،，、\n]/).map((word) => word.trim()).filter(Boolean),
  ...Object.fromEntries(NUMBERS.map((number) => [number, numbers[number] === '' ? null : Number(numbers[number])])),
});

export class Rules implements Area {
  private drafts: Draft<Typed>[] | null = null;
  private revision = 0;
  private theirs: Rule[] | null = null;
  private held: Held | null = null;
  private count = 0;
  private isSaving = false;

  private stored: Pages<Rule>;

  constructor(private page: Page, private isAdmin: boolean) {
    this.stored = new Pages(page, 'rules', async () => {
      const { holdRules } = await ask(HOLD_RULES, {});
      this.revision = holdRules.revision;
      return whole(holdRules.rules);
    });
  }

  /** What was typed stays while another area is looked at. */
  async open() {
    if (this.drafts) return;
    const rules = await this.read();
    if (rules) this.use(rules);
  }

  private async read() {
    return (await this.stored.open()) ? this.stored.nodes : null;
  }

  private use(rules: Rule[]) {
    this.drafts = rules.map((rule, place) => this.draft(rule, this.drafts?.[place]?.id));
    this.theirs = null;
    this.page.render();
  }

  /** With the id of what stood in its place, and so with the focus. */
  private draft(rule: Rule, id = `rule-${(this.count += 1)}`) {
    return new Draft(this.page, id, typed(rule));
  }

  private get rules() {
    return this.drafts!.map(({ values }) => given(values));
  }

  private async add() {
    const draft = this.draft(NO_RULE);
    this.drafts!.push(draft);
    await this.page.focus(`#rule-${this.count}-name`);
  }

  private move(draft: Draft<Typed>, by: number) {
    const place = this.drafts!.indexOf(draft);
    const others = this.drafts!.filter((one) => one !== draft);
    if (place + by < 0 || place + by > others.length) return;
    others.splice(place + by, 0, draft);
    this.drafts = others;
    void this.page.focus(`#${draft.id}-${by < 0 ? 'up' : 'down'}`);
  }

  private remove(draft: Draft<Typed>) {
    this.drafts = this.drafts!.filter((one) => one !== draft);
    void this.page.focus('#add-rule');
  }

  private async preview() {
    const data = await this.page.insist(() => ask(PREVIEW_HOLD_RULES, { rules: this.rules }));
    if (!data) return;
    this.held = data.previewHoldRules;
    this.page.say(this.page.t('wouldHold', { n: this.held.length }));
  }

  private async save(event: Event) {
    event.preventDefault();
    if (this.isSaving) return;
    const { rules, drafts, revision } = this;
    this.isSaving = true;
    const answer = await this.page.mutate(SET_HOLD_RULES, { input: { rules, revision, idempotencyKey: newKey() } });
    this.isSaving = false;
    if (!answer) return;
    if (answer.code === 'CONFLICT') {
      this.theirs = await this.read();
      this.page.say(this.page.t('rulesMeanwhile'));
    } else if (answer.code) {
      const path: string[] = answer.path ?? [];
      const draft = drafts![Number(path[path.indexOf('rules') + 1])];
      if (draft) await draft.refuse({ ...answer, path: ['name', ...path] });
      else this.page.say(this.page.refusal(answer));
    } else {
      this.revision = answer.rules.revision;
      this.theirs = null;
      // What was typed meanwhile stays, and is saved with the next press.
      if (JSON.stringify(rules) === JSON.stringify(this.rules)) this.use(answer.rules.rules);
      this.page.say(this.page.t('saved'));
    }
  }

  // ── views ──

  view() {
    const { page } = this;
    if (!this.drafts) return <section class="stack"><h2>{page.t('rules')}</h2>{this.stored.waiting()}</section>;
    return (
      <form class="stack" onsubmit={(event: Event) => this.save(event)}>
        <h2>{page.t('rules')}</h2>
        <p class="soft">{page.t('rulesWhat')}</p>
        {!this.drafts.length && <p>{page.t('noRules')}</p>}
        {this.drafts.map((draft, place) => this.rule(draft, place))}
        <div class="row">
          <button type="button" id="add-rule" onclick={() => this.add()}>{page.t('addRule')}</button>
          <button type="button" onclick={() => this.preview()}>{page.t('tryRules')}</button>
          {this.isAdmin ? <button type="submit" class="primary">{page.t('saveRules')}</button> : <span class="soft">{page.t('rulesForAdmins')}</span>}
        </div>
        {this.theirs && this.others(this.theirs)}
        {this.held && this.preheld(this.held)}
      </form>
    );
  }

  private rule(draft: Draft<Typed>, place: number) {
    const { page } = this;
    const { name } = draft.values;
    const buttons = { up: () => this.move(draft, -1), down: () => this.move(draft, 1), remove: () => this.remove(draft) };
    return (
      <fieldset key={draft.id} class="match stack">
        <legend>{page.t('ruleOf', { n: place + 1 })}</legend>
        <div class="row end">
          {draft.field('name', page.t('name'), { required: true, maxlength: 60 })}
          {draft.field('language', page.t('ruleLanguage'), { placeholder: 'en', size: 6 })}
          {draft.field('guests', page.t('ruleGuests'), { type: 'checkbox' })}
        </div>
        {draft.field('words', page.t('ruleWords'), { tag: 'textarea', rows: 2, hint: page.t('ruleWordsHint') })}
        <div class="row end">
          {NUMBERS.map((number) => draft.field(number, page.t(number), { type: 'number', min: 0, max: 1000 }))}
        </div>
        <div class="row">
          {Object.entries(buttons).map(([text, act]) => <button type="button" id={`${draft.id}-${text}`} class={text === 'remove' ? 'plain' : ''} onclick={firstClick(act)}>{page.t(text)}<span class="hidden"> {name}</span></button>)}
        </div>
      </fieldset>
    );
  }

  private others(rules: Rule[]) {
    const { page } = this;
    const told = ({ words, guests, language, ...rule }: Rule) => [
      language && `${page.t('ruleLanguage')}: ${language}`,
      words.length > 0 && `${page.t('ruleWords')}: ${words.join(', ')}`,
      ...NUMBERS.map((number) => rule[number] !== null && `${page.t(number)}: ${rule[number]}`),
      guests && page.t('ruleGuests'),
    ].filter(Boolean).join(' · ');
    return (
      <section class="stack">
        <h3>{page.t('rulesTheirs')}</h3>
        <ul class="stack">{rules.map((rule) => <li dir="auto"><strong>{rule.name}</strong> {told(rule)}</li>)}</ul>
        <div class="row"><button type="button" onclick={() => this.use(rules)}>{page.t('takeTheirs')}</button></div>
      </section>
    );
  }

  private preheld(held: Held) {
    const { page } = this;
    return (
      <section class="stack">
        <h3>{page.t('wouldHold', { n: held.length })}</h3>
        {held.slice(0, SHOWN).map(({ heldBy, comment }) => (
          <article key={comment.id}>
            <p class="error">{page.t('heldBy', { rule: heldBy })}</p>
            <p class="soft"><span dir="auto">{comment.author.name}</span> {comment.author.isGuest && page.t('guest')} · {page.date(comment.createdAt)}</p>
            <p class="body" dir="auto">{comment.body}</p>
          </article>
        ))}
      </section>
    );
  }
}
