// The picture of a form: chosen from a file, shown as the service would store it, and left out again.

import { type View, h } from '../base/dom';
import { picture } from '../base/part';
import { ask } from '../service';
import { PREVIEW_CONTENDER, type PreviewContenderData } from '../generated/admin';
import { type Page, anew } from './area';
import type { Draft } from './draft';

type Pictured = { name: string; svg: string };

const MOST_SVG = 48 * 1024;

export class Picture<V extends Pictured> {
  private preview: PreviewContenderData['previewContender'] | null = null;
  private input: HTMLInputElement | null = null;

  /** `draft` has what is sent. */
  constructor(private page: Page, private draft: Draft<V>) {}

  private async pick(input: HTMLInputElement) {
    this.input = input;
    const [file] = input.files!;
    if (!file || file.size > MOST_SVG) this.leaveOut();
    if (!file) return;
    if (file.size > MOST_SVG) return this.page.say(this.page.t('pictureTooLarge'));
    const values: Pictured = this.draft.values;
    this.preview = null;
    const svg = (values.svg = await file.text());
    const data = await this.page.insist(() => ask(PREVIEW_CONTENDER, { svg }));
    if (svg !== values.svg) return; // another one was chosen meanwhile
    this.preview = data?.previewContender ?? null;
    if (!this.preview) this.leaveOut(); // refused, as sending it would be
    else if (!values.name) values.name = file.name.replace(/\.svg$/i, '');
    this.page.render();
  }

  /** Leaves what was chosen out, also of the field, which would name it as one that is sent. */
  leaveOut() {
    this.draft.revert('svg');
    this.preview = null;
    if (this.input) this.input.value = '';
    this.page.render();
  }

  private async remove() {
    this.leaveOut();
    (this.draft.values as Pictured).svg = '';
    await this.page.focus(`#${this.draft.id}-svg`);
  }

  /** What is chosen once the service has answered how it would store it; else what is stored. */
  private get shown(): string {
    const { values, changed } = this.draft;
    return this.preview?.svg ?? ('svg' in changed ? '' : values.svg);
  }

  view(): View {
    const { page, draft, shown, preview } = this;
    const theirs = draft.theirsOf('svg') as string | undefined;
    const image = (svg: string) => <img src={picture({ svg })} alt={page.t('preview')} width="96" height="96" />;
    return (
      <div class="stack tight">
        <label>{page.t('picture')}<input id={`${draft.id}-svg`} type="file" accept=".svg,image/svg+xml" aria-describedby={theirs !== undefined && `${draft.id}-svg-theirs`} onclick={anew} onchange={({ currentTarget }: any) => this.pick(currentTarget)} /></label>
        {shown && (
          <figure class="stack tight">
            {image(shown)}
            <div class="row"><button type="button" class="plain" onclick={() => this.remove()}>{page.t('remove')}<span class="hidden"> {page.t('picture')}</span></button></div>
            {preview?.removed.length ? <figcaption class="error">{page.t('pictureRemoved', { names: preview.removed.join(', ') })}</figcaption> : null}
          </figure>
        )}
        {theirs !== undefined && (
          <figure class="stack tight">
            <figcaption id={`${draft.id}-svg-theirs`} class="error">{page.t('theirs', { value: theirs ? '' : '—' })}</figcaption>
            {theirs && image(theirs)}
          </figure>
        )}
      </div>
    );
  }
}
