// <ringside-comments product="…">: what others say, with their replies. What a reader does beyond reading is in writing.tsx,
// which is loaded when it is first needed.

import { type View, h } from '../base/dom';
import { Part } from '../base/part';
import { COMMENT_POSTED, type CommentPostedData, REPLIES } from '../generated/comments';
import type { CommentsData } from '../generated/first';
import type { Ringside } from '../elements';
import css from './comments.css?inline';
import english from 'english:comments';
import { commentView } from './thread';
import type { Writing } from './writing';

export type Comment = CommentsData['comments']['nodes'][number];
export type Reply = Comment['replies']['nodes'][number];
type Arrived = CommentPostedData['commentPosted'];
type Statistics = CommentsData['commentStatistics'];
type Order = 'NEWEST' | 'HELPFUL';
const EDITORS = ['editor', 'admin'];
type Filter = { languages?: string[]; ratings?: number[]; verified?: boolean; order?: Order };

export default class Comments extends Part<CommentsData> {
  declare readonly product: string;
  /** Whether stars are asked for: `yes`, `no`, or as the writer likes. */
  declare readonly rated: string | null;
  /** Where the draft of a comment is kept; other drafts have the id of what they are about behind it. */
  declare readonly draft: string;
  private declare languages: string[];
  private ratings: number[] = [];
  /** Whether only buyers are shown, by a shop's proof. */
  private verified = false;
  private declare order: Order;
  comments: Comment[] | null = null;
  total = 0;
  viewer: CommentsData['viewer'] = null;
  private more: string | null = null;
  statistics: Statistics | null = null;
  /** Comments that arrived meanwhile, and replies by their comment. They are shown when the reader asks: nothing jumps. */
  fresh: Comment[] = [];
  freshReplies = new Map<string, Reply[]>();
  /** What arrives while a page is read, which may be older. */
  private meanwhile: Arrived[] = [];
  /** When the page was read, by the service's clock. */
  private readAt = '';
  declare writing?: Writing;
  private declare loading?: Promise<Writing | null> | null;
  private declare isLoading?: boolean;

  constructor(host: HTMLElement, ringside: Ringside, texts: any) {
    super(host, ringside, texts, 'comments', english, css);
    this.product = host.getAttribute('product') ?? '';
    this.languages = listed(host.getAttribute('languages')).map(kept);
    this.order = host.getAttribute('order') === 'helpful' ? 'HELPFUL' : 'NEWEST';
    this.rated = host.getAttribute('rated');
    this.draft = `ringside draft ${ringside.base} ${this.product}`;
    if (this.drafts().length) void this.write();
  }

  /** Uses what is needed for writing, once it is here. */
  write = async (use?: (writing: Writing) => unknown) => {
    const { ask, Failed } = this.ringside;
    const load = () => import('./writing').then((module) => module.load(this));
    const arrive = () => load().catch(async () => {
      await ask(...this.first!); // it fails if the service cannot be reached
      return load().catch((problem) => {
        throw new Failed('PERSISTED_QUERY', String(problem)); // not dropped once: the page is older than the service
      });
    });
    const loaded = await (this.loading ??= this.insist(arrive));
    if (!loaded) return void (this.loading = null);
    if (!this.writing) {
      this.say('');
      (this.writing = loaded).restore();
    }
    use?.(loaded);
  };

  /** The places of the drafts that are kept. */
  drafts() {
    try {
      return Object.keys(localStorage).filter((key) => key === this.draft || key.startsWith(`${this.draft} `));
    } catch {
      return [];
    }
  }

  // ── reading ──

  protected arrived(data: CommentsData) {
    const { now, comments, commentStatistics, viewer } = data;
    const before = this.comments ?? [];
    if (this.viewer && !viewer) this.say(this.t('UNAUTHENTICATED'));
    this.comments = comments.nodes;
    this.writing?.keep(before);
    this.take(data);
    this.statistics = commentStatistics;
    this.viewer = viewer;
    // Not after the newest comment: all later replies, and what was published late, would come again to each page.
    if (!this.readAt) this.listen(COMMENT_POSTED, { product: this.product, after: now }, ({ commentPosted }) => this.arrivedLive(commentPosted));
    this.readAt = now;
    this.writing?.restore();
    this.render();
  }

  get isFiltered() {
    return this.verified || this.ratings.length + this.languages.length > 0;
  }

  /** Editors answer in the site's name. */
  get isEditor() {
    return this.viewer?.roles?.some((role) => EDITORS.includes(role));
  }

  private take({ comments: { totalCount, pageInfo } }: CommentsData) {
    this.total = totalCount;
    this.more = pageInfo.hasNextPage ? pageInfo.endCursor : null;
  }

  private ask(after: string | null = null) {
    const { product, languages, ratings, verified, order } = this;
    return this.insist(() => this.ringside.ask(this.first![0], { product, languages, ratings, verified: verified || null, order, after }));
  }

  /** Whether what was asked for is shown now. */
  private async reload() {
    if (!this.first) return false;
    const turn = ++this.turn;
    this.isLoading = true;
    this.render();
    const answer = await this.ask();
    if (turn !== this.turn) return false; // it is the latest that counts
    this.isLoading = false;
    if (answer) {
      this.fresh = [];
      this.freshReplies.clear();
      this.arrived(answer);
    } else this.render();
    this.meanwhile.splice(0).forEach((comment) => this.arrivedLive(comment));
    return Boolean(answer);
  }

  protected signedInOrOut() {
    void this.reload();
  }

  private async showMore() {
    const { turn } = this;
    const answer = await this.ask(this.more);
    if (!answer || turn !== this.turn) return;
    const next = without(this.comments!, answer.comments.nodes);
    this.fresh = without(next, this.fresh); // posted when the page was read, say
    this.comments!.push(...next);
    this.take(answer);
    await this.showNext(next);
  }

  async showMoreReplies(comment: Comment) {
    const { replies } = comment;
    const answer = await this.insist(() => this.ringside.ask(REPLIES, { comment: comment.id, after: replies.pageInfo.endCursor }));
    if (!answer?.comment) return;
    const next = without(replies.nodes, answer.comment.replies.nodes);
    replies.nodes = [...replies.nodes, ...next].sort((one, other) => one.createdAt.localeCompare(other.createdAt));
    replies.pageInfo = answer.comment.replies.pageInfo;
    await this.showNext(next);
  }

  private async showNext([first]: Reply[]) {
    this.writing?.restore();
    if (first) await this.focusOn(first.id);
    else this.render();
  }

  /** Not out of a form, in which somebody writes by now. */
  focusOn(id: string) {
    return this.focus(`section:not(:has(form:focus-within)) [data-id="${id}"]`);
  }

  private filter(changed: Filter) {
    Object.assign(this, changed);
    void this.reload().then((isShown) => isShown && this.say(this.t('found', { n: this.total })));
  }

  // ── what arrives meanwhile ──

  private arrivedLive(comment: Arrived) {
    if (this.isLoading) return void this.meanwhile.push(comment);
    if (this.replace(comment)) return;
    if (comment.thread) this.replyArrived(comment);
    else if (this.fits(comment) && !this.fresh.some(({ id }) => id === comment.id)) {
      this.fresh.unshift(comment);
      this.say(this.t('arrived', { n: this.fresh.length }));
    }
  }

  /** A reply to a thread with further pages is on one of these, and is counted there if it was posted before the page was read. */
  private replyArrived(reply: Arrived) {
    const root = this.rootOf(reply.thread!, this.arrivedToo);
    if (!root) return;
    const { nodes, pageInfo } = root.replies;
    if (pageInfo.hasNextPage && reply.createdAt < this.readAt) return;
    root.replyCount += 1;
    const isShown = !this.fresh.includes(root);
    if (!isShown) nodes.push(reply);
    else if (!pageInfo.hasNextPage) this.freshReplies.set(root.id, [...(this.freshReplies.get(root.id) ?? []), reply]);
    if (isShown) this.say(this.t('replyArrived', { name: reply.author.name }));
  }

  /** Comments that are shown, and those that arrived and wait. */
  private get arrivedToo() {
    return [...this.fresh, ...(this.comments ?? [])];
  }

  /** The comment in whose thread something stands, of those that are shown. */
  rootOf(id: string, among = this.comments ?? []) {
    const isIt = (one: Reply) => one.id === id;
    return among.find((comment) => isIt(comment) || comment.replies.nodes.some(isIt) || this.freshReplies.get(comment.id)?.some(isIt));
  }

  private fits({ rating, language, verifiedAt }: Comment) {
    return (!this.verified || verifiedAt) && (!this.ratings.length || this.ratings.includes(rating!)) && (!this.languages.length || this.languages.includes(language));
  }

  private async showFresh() {
    const [first] = this.fresh;
    this.comments = [...this.fresh, ...this.comments!];
    this.fresh = [];
    if (first) await this.focusOn(first.id);
  }

  async showFreshReplies({ id, replies }: Comment) {
    const waiting = this.freshReplies.get(id)!;
    this.freshReplies.delete(id);
    replies.nodes = [...replies.nodes, ...waiting];
    await this.focusOn(waiting[0]!.id);
  }

  // ── what becomes of one that is shown ──

  /** Shows a comment or reply as it is now, with the replies that are here already; false if it is not shown. */
  replace(changed: Comment) {
    const root = this.rootOf(changed.id, this.arrivedToo);
    if (!root) return false;
    if (root.id === changed.id) Object.assign(root, changed, { replies: root.replies, replyCount: root.replyCount });
    else for (const replies of [root.replies.nodes, this.freshReplies.get(root.id) ?? []]) {
      const place = replies.findIndex(({ id }) => id === changed.id);
      if (place >= 0) replies[place] = changed;
    }
    this.render();
    return true;
  }

  // ── views ──

  protected view() {
    const { comments, fresh, more, writing } = this;
    const form = writing?.postForm();
    return (
      <section class="stack" aria-labelledby="title" aria-busy={this.isLoading && 'true'}>
        <div class="row between">
          <h2 id="title" part="title">{this.t('comments')}</h2>
          {!form && !this.viewer?.suspension && (
            <button type="button" class="primary" part="button" onclick={() => this.write((writing) => writing.post())}>{this.t('write')}</button>
          )}
        </div>
        {this.viewer?.suspension && <p class="notice">{this.t('suspended')} <span dir="auto">{this.viewer.suspension.reason}</span></p>}
        {this.statistics && this.statistics.total > 0 && this.overview(this.statistics)}
        {form}
        {this.note()}
        <div class="fresh">{fresh.length > 0 && <button type="button" class="primary" part="button" onclick={() => this.showFresh()}>{this.t('showFresh', { n: fresh.length })}</button>}</div>
        {comments?.length === 0 && <p class="notice">{this.t(this.isFiltered ? 'noneFound' : 'none')}</p>}
        <ol key="list" class="list" aria-label={this.t('comments')}>
          {comments ? comments.map((comment) => commentView(this, comment)) : [1, 2, 3].map(() => <li class="wait" aria-hidden="true"></li>)}
        </ol>
        {more && <button type="button" part="button" onclick={() => this.showMore()}>{this.t('more')}</button>}
        {writing?.dialog()}
      </section>
    );
  }

  private overview(statistics: Statistics) {
    const { total, rated, verified, average, histogram, verifiedHistogram, languages } = statistics;
    const hasStars = this.rated !== 'no' && rated > 0;
    const chosen = this.languages.join();
    if (!hasStars && total < 2 && !chosen) return null;
    return (
      <div class={hasStars ? 'overview' : 'row'}>
        {hasStars && (
          <p class="average">
            <strong>{this.number(average ?? 0, { minimumFractionDigits: 1, maximumFractionDigits: 1 })}</strong>
            {this.stars(Math.round(average ?? 0), this.t('average'))}
            <span class="soft">{this.t('total', { n: total })}</span>
          </p>
        )}
        {hasStars && this.histogram(this.verified ? verifiedHistogram : histogram)}
        <div class="choices">
          {(languages.length > 1 || chosen) && (
            <label>
              {this.t('language')}
              <select value={chosen} onchange={(event: any) => this.filter({ languages: listed(event.target.value) })}>
                <option value="">{this.t('allLanguages')}</option>
                {chosen && !languages.some(({ language }) => language === chosen) && <option key="chosen" value={chosen}>{this.languages.map(this.languageName).join(', ')}</option>}
                {languages.map(({ language, count }) => <option key={language} value={language}>{this.t('counted', { what: this.languageName(language), n: count })}</option>)}
              </select>
            </label>
          )}
          <label>
            {this.t('order')}
            <select value={this.order} onchange={(event: any) => this.filter({ order: event.target.value })}>
              {['NEWEST', 'HELPFUL'].map((order) => <option key={order} value={order}>{this.t(order)}</option>)}
            </select>
          </label>
          {verified > 0 && (
            <label class="check">
              <input type="checkbox" checked={this.verified} onchange={(event: any) => this.filter({ verified: event.target.checked })} />
              {this.t('counted', { what: this.t('verifiedOnly'), n: verified })}
            </label>
          )}
        </div>
      </div>
    );
  }

  private histogram(histogram: Statistics['histogram']) {
    const most = Math.max(...histogram.map(({ count }) => count), 1);
    return (
      <ul class="histogram" aria-label={this.t('byRating')}>
        {histogram.map(({ rating, count }) => (
          <li key={rating}>
            <button
              type="button"
              class="plain"
              aria-pressed={String(this.ratings.includes(rating))}
              onclick={() => this.filter({ ratings: this.ratings.includes(rating) ? this.ratings.filter((one) => one !== rating) : [...this.ratings, rating] })}
            >
              <span class="hidden">{this.t('ofRating', { stars: this.t('stars', { n: rating }), n: count })}</span>
              <span aria-hidden="true">{this.number(rating)} ★</span>
              <progress max={most} value={count} aria-hidden="true"></progress>
              <span aria-hidden="true">{this.number(count)}</span>
            </button>
          </li>
        ))}
      </ul>
    );
  }

  private languageName = (language: string) => new Intl.DisplayNames(this.language, { type: 'language', fallback: 'code' }).of(language) ?? language;

  stars(rating: number, label = ''): View {
    return (
      <span class="rating">
        <span class="hidden">{label} {this.t('stars', { n: rating })}</span>
        <span aria-hidden="true">{'★'.repeat(rating)}{'☆'.repeat(5 - rating)}</span>
      </span>
    );
  }
}

/** A language as the service keeps it: without region, with its script where that is not the usual one. */
function kept(tag: string) {
  try {
    const { language, script } = new Intl.Locale(tag.replace(/_/g, '-')).maximize();
    return script === new Intl.Locale(language).maximize().script ? language : `${language}-${script}`;
  } catch {
    return tag; // which the service refuses
  }
}

/** Those that are not known yet. */
const without = <T extends Reply>(known: Reply[], all: T[]) => all.filter(({ id }) => !known.some((one) => one.id === id));

const listed = (text: string | null) => text?.match(/[^\s,]+/g) ?? [];
