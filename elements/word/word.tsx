// <ringside-word>: a list's word of the day, a quiz, the words that are due, and an email a day.

import { h } from '../base/dom';
import { Part, newKey, pause } from '../base/part';
import type { WordData, WordsData } from '../generated/first';
import { ANSWER_QUIZ, DUE_WORDS, type DueWordsData, REQUEST_SUBSCRIPTION, REVIEW_WORD, START_QUIZ, type StartQuizData, type AnswerQuizData } from '../generated/word';
import type { Ringside } from '../elements';
import css from './word.css?inline';
import english from 'english:word';

type Data = WordData | WordsData;
type Daily = WordsData['dailyWords'][number];
type Word = Daily['word'];
type Quiz = Extract<StartQuizData['startQuiz'], { token: string }>;
type Graded = Extract<AnswerQuizData['answerQuiz'], { result: object }>;
type Due = NonNullable<DueWordsData['viewer']>['due']['nodes'];

const GRADES = ['AGAIN', 'HARD', 'GOOD', 'EASY'];

/** Not for the second click of a double one: what stands there by then has not been read. */
const firstClick = (act: () => unknown) => ({ detail }: MouseEvent) => void (detail < 2 && act());

export default class WordOfTheDay extends Part<Data> {
  private words: Daily[] | null = null;
  /** The list that the reader chose, or else the first one: it stays theirs while others come and go. */
  private chosen = '';
  protected viewer: Data['viewer'] = null;
  private quiz: Quiz | null = null;
  private answers: string[] = [];
  /** Of the request that hands them in: sent again, it counts once. */
  private key = '';
  private graded: Graded | null = null;
  private waitsUntil = 0;
  private due: Due | null = null;
  private declare isOpen?: boolean;
  /** The form for an address, while there is one. */
  private declare subscribing?: object | null;
  private email = '';
  private declare problem?: string;
  private hasQuiz: boolean;
  /** Where a quiz whose questions are all answered is kept: the page may be left to sign in. */
  private kept: string;
  private declare isSending?: boolean;
  /** Whether a guest was refused a quiz. */
  private declare needsMember?: boolean;

  constructor(host: HTMLElement, ringside: Ringside, texts: any) {
    super(host, ringside, texts, 'word', english, css);
    this.hasQuiz = host.getAttribute('quiz') !== 'no';
    this.kept = `ringside quiz ${host.getAttribute('list')}`;
    try {
      if (this.hasQuiz) Object.assign(this, JSON.parse(sessionStorage[this.kept]));
    } catch { /* blocked, or there is none */ }
  }

  private keep() {
    const { quiz, answers, key, chosen } = this;
    try {
      sessionStorage[this.kept] = JSON.stringify(quiz && { quiz, answers, key, chosen });
    } catch { /* blocked or full: the quiz is on the page, and nowhere else */ }
  }

  protected arrived(data: Data) {
    this.viewer = data.viewer;
    this.needsMember = false;
    this.words = 'dailyWords' in data ? data.dailyWords : [data.wordList?.dailyWord ?? []].flat();
    this.chosen ||= this.words[0]?.list.id ?? '';
    if (this.secondsTo(this.quiz?.expiresAt!) < 0) this.quiz = null; // it was kept for too long
    this.render();
    if (this.viewer && this.quiz?.questions.length === this.answers.length) void this.hand();
  }

  /**
   * What a member reviews, and what a quiz gave, is shown to nobody else. Answers that could not be handed in when the
   * session ended are handed in by the next one.
   */
  protected async signedInOrOut() {
    const before = this.viewer?.id;
    await this.askAgain();
    const shown = this.due ?? this.graded;
    if (shown && this.viewer?.id !== before) {
      this.due = this.graded = null;
      if (this.find(':focus')) await this.focus('#title');
      else this.render();
    }
  }

  private get daily() {
    return this.words?.find(({ list }) => list.id === this.chosen) ?? this.words?.[0];
  }

  /** Pressing again while the answer takes its time sends nothing twice. */
  private once(send: () => Promise<void>) {
    if (this.isSending) return;
    this.isSending = true;
    void send().finally(() => (this.isSending = false));
  }

  // ── quiz ──

  private async startQuiz() {
    const { id: list, wordCount } = this.daily!.list;
    const started = await this.mutate(START_QUIZ, { input: { list, size: Math.min(5, wordCount), idempotencyKey: newKey() } });
    if (!started || list !== this.daily?.list.id) return; // another list was chosen meanwhile
    if (started.code) {
      this.needsMember = started.code === 'NOT_ALLOWED' && this.viewer!.isGuest;
      return this.say(this.refusal(started));
    }
    this.say('');
    this.quiz = started;
    this.answers = [];
    this.key = newKey();
    this.graded = null;
    await this.focus('#question');
  }

  private choose(choice: string) {
    this.answers.push(choice);
    return this.answers.length < this.quiz!.questions.length ? this.focus('#question') : this.hand();
  }

  /** Hands the answers in. Too early, they wait: reading takes a moment, and the service gives it. */
  private async hand() {
    this.keep();
    const quiz = this.quiz!;
    const input = { token: quiz.token, answers: this.answers, idempotencyKey: this.key };
    void this.focus('#title'); // the answer that was pressed is gone
    if (!this.viewer) return; // who signs in hands them in
    await this.countDown(this.secondsTo(quiz.earliestAnswerAt));
    for (;;) {
      const answer = await this.mutate(ANSWER_QUIZ, { input });
      if (!answer || this.isStopped || quiz !== this.quiz) return; // another list was chosen meanwhile
      if (answer.code !== 'RATE_LIMITED') return this.finish(answer);
      await this.countDown(answer.retryAfterSeconds ?? 1);
    }
  }

  private async countDown(seconds: number) {
    if (seconds <= 0) return;
    this.waitsUntil = Date.now() + seconds * 1000 + 100;
    this.say(this.t('soon', { time: this.duration(seconds) }));
    while (Date.now() < this.waitsUntil && !this.isStopped) {
      this.render();
      await pause(Math.min(0.5, (this.waitsUntil - Date.now()) / 1000));
    }
    this.render();
  }

  private finish(answer: any) {
    if (answer.code !== 'NOT_SIGNED_IN') this.quiz = null; // else who signs in hands it in
    this.keep();
    if (answer.code) return this.say(this.refusal(answer));
    const { correct, total } = (this.graded = answer as Graded).result;
    if (this.viewer) this.viewer.streak = this.graded.streak;
    this.say(this.t('result', { correct, total }));
    this.emit('quiz', { list: this.daily!.list.id, correct, total });
    void this.focus('#result');
  }

  // ── review ──

  private async review() {
    const answer = await this.insist(() => this.ringside.ask(DUE_WORDS));
    if (!answer) return;
    const { viewer } = answer;
    this.isOpen = false;
    if (viewer?.due.nodes.length) {
      this.due = viewer.due.nodes;
      await this.focus('#due');
    } else if (viewer) await this.reviewed(0);
    else {
      this.viewer = null;
      this.say(this.t('UNAUTHENTICATED'));
    }
  }

  /** After the last word that was read: more may have become due, or there were more. */
  private async reviewed(dueCount: number) {
    this.due = null;
    if (this.viewer) this.viewer.dueCount = dueCount;
    this.say(dueCount ? '' : this.t('allReviewed'));
    await this.focus('#title');
  }

  private async grade(grade: string) {
    const due = this.due!;
    const [{ word }] = due as [Due[number]];
    const answer = await this.mutate(REVIEW_WORD, { input: { word: word.id, grade, idempotencyKey: newKey() } });
    if (!answer) return;
    // Not found is a word whose list was deleted meanwhile.
    if (answer.code && answer.code !== 'NOT_FOUND') return this.say(this.refusal(answer));
    due.shift();
    const dueCount = Math.max(0, (this.viewer?.dueCount ?? 0) - 1);
    if (this.viewer) this.viewer.dueCount = dueCount;
    if (!answer.code) this.emit('review', { word: word.id, grade });
    if (this.due !== due) return this.render(); // the reader has gone on to something else
    this.isOpen = false;
    if (due.length) await this.focus('#due');
    else await this.reviewed(dueCount);
  }

  // ── subscription ──

  private async subscribe() {
    const input = { email: this.email, list: this.daily!.list.id, idempotencyKey: newKey() };
    const form = this.subscribing;
    const answer = await this.mutate(REQUEST_SUBSCRIPTION, { input }, () => form !== this.subscribing);
    if (!answer) return;
    this.problem = answer.code ? this.refusal(answer) : '';
    if (this.problem) void this.focus('#email');
    else {
      this.closeSubscription();
      this.say(this.t('sent', { email: answer.email }));
      this.emit('subscription', { list: input.list });
    }
  }

  private closeSubscription() {
    this.subscribing = null;
    this.isSending = false;
    this.problem = '';
    void this.focus('#subscribe');
  }

  // ── views ──

  protected view() {
    const { words, daily } = this;
    if (words && !daily) return <p class="notice">{this.t('none')}</p>;
    return (
      <section class="stack" aria-labelledby="title">
        <div class="row between">
          <h2 id="title" part="title" tabindex="-1">{this.t('word')}</h2>
          {words && words.length > 1 && this.chooser()}
        </div>
        {this.quiz ? this.question(this.quiz) : this.due ? this.dueWord() : this.graded ? this.result(this.graded) : this.today()}
        {this.note()}
      </section>
    );
  }

  private chooser() {
    return (
      <label>
        <span class="hidden">{this.t('list')}</span>
        <select value={this.daily!.list.id} onchange={(event: any) => { this.chosen = event.target.value; this.quiz = this.graded = this.due = null; this.keep(); this.render(); }}>
          {this.words!.map(({ list }) => <option key={list.id} value={list.id}>{list.name}</option>)}
        </select>
      </label>
    );
  }

  private today() {
    const { daily, viewer } = this;
    if (!daily) return <div class="wait"></div>;
    const hasQuiz = this.hasQuiz && daily.list.wordCount > 2; // the service's shortest quiz has three questions
    const list = `\u2068${daily.list.name}\u2069`; // isolated: a name of the other direction would take the date's day with it
    return (
      <div class="stack">
        {this.entry(daily.word)}
        <p class="soft">{this.t('of', { list, date: this.date(daily.date, { dateStyle: 'long', timeZone: 'UTC' }) })}</p>
        <div class="row">
          {(hasQuiz || this.said === this.t('UNAUTHENTICATED')) && (viewer && !this.needsMember ? <button type="button" class="primary" part="button" onclick={() => this.once(() => this.startQuiz())}>{this.t('startQuiz')}</button> : this.signInButton())}
          {viewer && viewer.dueCount > 0 && <button type="button" part="button" onclick={() => this.once(() => this.review())}>{this.t('reviewDue', { n: viewer.dueCount })}</button>}
          {!this.subscribing && daily.list.subscribableByEmail && <button type="button" id="subscribe" part="button" onclick={() => { this.subscribing = {}; void this.focus('#email'); }}>{this.t('subscribe')}</button>}
        </div>
        {viewer ? <p class="soft">{viewer.streak.current ? this.t('streak', { n: viewer.streak.current }) : this.t('noStreak')}</p> : hasQuiz && <p class="soft">{this.t('quizNeeds')}</p>}
        {this.subscribing && daily.list.subscribableByEmail && this.subscription()}
      </div>
    );
  }

  private entry({ term, traditional, reading, definition, example, audioUrl, chinese }: Word, isOpen = true) {
    const lang = chinese && 'zh-Hans';
    return (
      <div class="entry" part="word">
        <p class="row">
          <strong class="term" dir="auto" lang={lang}>{term}</strong>
          {traditional && traditional !== term && <span class="term soft" lang="zh-Hant">{traditional}</span>}
          {audioUrl?.startsWith('https://') && <button type="button" part="button" onclick={() => new Audio(audioUrl).play().catch(() => this.say(this.t('noSound')))}>{this.t('listen')}</button>}
        </p>
        {isOpen && [
          reading && <p class="reading" dir="auto">{reading}</p>,
          <p dir="auto">{definition}</p>,
          example && <p class="soft" dir="auto" lang={lang}>{example}</p>,
        ]}
      </div>
    );
  }

  private question({ questions }: Quiz) {
    const asked = questions[this.answers.length];
    if (!asked && !this.viewer) return this.signInButton();
    if (!asked) {
      const left = (this.waitsUntil - Date.now()) / 1000;
      return <p class="notice">{left > 0 ? this.t('soon', { time: this.duration(left) }) : this.t('grading')}</p>;
    }
    return (
      <div class="stack" key={asked.number}>
        <p class="soft">{this.t('question', { n: asked.number, total: questions.length })}</p>
        <h3 id="question" class="prompt" tabindex="-1" dir="auto">{asked.prompt}</h3>
        <ul class="choices">
          {asked.choices.map((choice) => <li key={choice}><button type="button" part="button" dir="auto" onclick={firstClick(() => this.choose(choice))}>{choice}</button></li>)}
        </ul>
      </div>
    );
  }

  private result({ result: { correct, total }, answers }: Graded) {
    return (
      <div class="stack">
        <h3 id="result" tabindex="-1">{this.t('result', { correct, total })}</h3>
        {this.viewer && <p class="soft">{this.t('streak', { n: this.viewer.streak.current })}</p>}
        <ol class="answers">
          {answers.map(({ number, right, given, word }) => (
            <li key={number}>
              <strong class={right ? 'right' : 'wrong'}>{this.t(right ? 'right' : 'wrong')}</strong>
              <span><bdi>{word.term}</bdi> – <bdi>{word.definition}</bdi>{!right && given && <span class="soft"> {this.t('given', { given })}</span>}</span>
            </li>
          ))}
        </ol>
        <div class="row">
          <button type="button" class="primary" part="button" onclick={() => this.once(() => this.startQuiz())}>{this.t('another')}</button>
          <button type="button" part="button" onclick={() => { this.graded = null; void this.focus('button.primary'); }}>{this.t('back')}</button>
        </div>
      </div>
    );
  }

  private dueWord() {
    const next = this.due![0]!;
    return (
      <div class="stack" id="due" tabindex="-1" aria-label={this.t('due')}>
        {this.entry(next.word, this.isOpen)}
        <div class="row">
          {this.isOpen ? GRADES.map((grade) => <button type="button" part="button" onclick={firstClick(() => this.once(() => this.grade(grade)))}>{this.t(grade)}</button>) : (
            <button type="button" class="primary" part="button" onclick={() => { this.isOpen = true; void this.focus('#due button'); }}>{this.t('show')}</button>
          )}
          <button type="button" class="plain" onclick={() => { this.due = null; void this.focus('#title'); }}>{this.t('back')}</button>
        </div>
      </div>
    );
  }

  private subscription() {
    return (
      <form class="row" onsubmit={(event: Event) => { event.preventDefault(); this.once(() => this.subscribe()); }}>
        <label>
          {this.t('email')}
          <input id="email" type="email" required autocomplete="email" dir="ltr" value={this.email} aria-invalid={this.problem ? 'true' : null} aria-describedby={this.problem ? 'problem' : 'how'} oninput={(event: any) => { this.email = event.target.value; this.problem = ''; this.render(); }} />
        </label>
        <button type="submit" class="primary" part="button">{this.t('send')}</button>
        <button type="button" part="button" onclick={() => this.closeSubscription()}>{this.t('cancel')}</button>
        {this.problem ? <p class="error" id="problem" role="alert">{this.problem}</p> : <p class="soft" id="how">{this.t('how')}</p>}
      </form>
    );
  }
}
