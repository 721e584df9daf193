"""Vocabulary: word lists, daily words and their subscriptions; quizzes, sentences, and words due for review."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import strawberry

from datastore.vocabulary import daily
from datastore.vocabulary import learning as learning_store
from datastore.vocabulary import lists as list_store
from datastore.vocabulary import words as word_store
from datastore.vocabulary.quizzes import Card
from datastore.vocabulary.subscriptions import CharacterSet, Subscription
from resolvers.vocabulary import (
    daily_words,
    learning,
    lists,
    quiz_leaderboard,
    quizzes,
    schedules,
    subscriptions,
    texts,
    visibility,
)
from resolvers.vocabulary.cache import MOST_LISTS
from resolvers.whole.mutations import Terms
from schema.framework.arguments import input_type
from schema.framework.declarations import (
    READ,
    Node,
    connection,
    described,
    enum,
    field,
    mutation,
    object_type,
    record_type,
)
from schema.framework.lazy import LazyUser

enum(
    CharacterSet,
    "One of the two spellings of a Chinese word; without effect on words of other languages.",
    SIMPLIFIED="As written in mainland China and Singapore.",
    TRADITIONAL="As written in Taiwan, Hong Kong and Macau.",
)

_WORD_TEXTS: Any = {
    "simplified": "A Chinese word in simplified characters, 1 to 100.",
    "traditional": "The same in traditional characters, up to 100.",
    "pinyin": "How a Chinese word is pronounced, up to 200 characters.",
    "definition": "What it means, 1 to 1,000 characters.",
    "term": "The word in its own script, 1 to 100 characters.",
    "reading": "How it is read, up to 200 characters.",
    "example": "A sentence with it, up to 500 characters.",
    "audio_url": "The address of its audio, starting with https://.",
}
_FROM = "The first day to include."
_TO = "The last day to include."


# ── lists and words ──


@record_type(word_store.Word, "A word to learn, of any language.")
class Word(Node):
    term: str = described("The word; a Chinese one in simplified characters.")
    reading: str | None = described("How it is read: kana, a transcription or, for a Chinese word, its pinyin.")
    example: str | None = described("A sentence with it.")
    audio_url: str | None = described("The address of its audio.")
    simplified: str = described("In simplified characters; a word of another language as it is.")
    traditional: str | None = described("In traditional characters, if they were given.")
    pinyin: str | None = described("How a Chinese word is pronounced.")
    definition: str = described("What it means.")
    chinese: bool = described("Whether it was given as `simplified`, so that it has spellings and pinyin.")
    revision: int = field(visibility.word_revision, "Another number after each change of its texts.")


@record_type(
    daily.DailyWord,
    "A list's word of one day. It is the same for everyone, and no word is repeated before all have been used.",
)
class DailyWord:
    list: WordList = field(visibility.list_of, "The list it was drawn from.")
    date: date = described("The day.")
    word: Word = field(daily_words.daily_word_words, "The word, even if it has since been removed from the list.")


WordConnection = connection(
    Word, "A page of a list's words, in the order they were added.", edge="A word's place in a page."
)
DailyWordConnection = connection(
    DailyWord, "A page of past daily words, newest first.", edge="A daily word's place in a page."
)


@record_type(list_store.WordList, "A list of words: a public one, maintained by editors, or a member's private one.")
class WordList(Node):
    name: str = described("Its name.")
    level: int | None = described("The difficulty of its words, 0 to 100, on the community's own scale.")
    public: bool = described("Whether everyone may see it and subscribe to it.")
    owner: LazyUser | None = field(lists.owner, "The owner of a private list; null for a public one.")
    created_at: datetime = described("When it was created.")
    revision: int = described("Another number after each change of its name, level or visibility.")
    word_count: int = described("The number of words.")
    subscriber_count: int = field(
        lists.subscriber_count,
        "The number of subscribed members. A member with both character sets counts once.",
        complexity=READ,
    )
    subscribable_by_email: bool = field(
        subscriptions.subscribable_by_email,
        "Whether `requestSubscription` takes an address: the list is public, and this site sends emails.",
    )
    words: WordConnection = field(visibility.words, "Its words, in the order they were added.", complexity=READ)
    daily_word: DailyWord | None = field(
        daily_words.daily_word,
        "The word of a day; null if the list has no words, or if none was drawn on a past day.",
        complexity=READ,
        on="The day; default today in UTC. A future day is refused.",
    )
    review: DailyWordConnection = field(
        daily_words.review, "Past daily words, newest first.", complexity=READ, from_=_FROM, to=_TO
    )


WordListConnection = connection(WordList, "A page of lists, by name.", edge="A list's place in a page.")


# ── learning ──


@record_type(Subscription, "A member's subscription to a list's words by email.")
class ListSubscription:
    list: WordList = field(visibility.list_of, "The list.")
    character_set: CharacterSet = described("The spelling of its words in the email.")
    active: bool = described(
        "Whether it is active; an ended one stays in the member's history. It ends when its list is deleted."
    )
    since: datetime = described("When it began.")


@record_type(learning_store.QuizResult, "The result of one quiz.")
class QuizResult(Node):
    user: LazyUser = field(learning.users, "The member who took the quiz.")
    list: WordList = field(visibility.list_of, "The list of the quiz; without its words if it was deleted.")
    date: date = described("The member's own day, set on submission and never changed.")
    correct: int = described("Questions answered correctly.")
    total: int = described("Questions asked.")
    submitted_at: datetime = described("When it was submitted.")
    proven: bool = described("Whether the service set and graded it, about a public list; `recordQuiz` gives false.")


@record_type(learning_store.Sentence, "A practice sentence.")
class Sentence(Node):
    user: LazyUser = field(learning.users, "Its author.")
    word: Word | None = field(
        learning.sentence_word,
        "The word it practises; null if its list was deleted and, for other members, if it is from a private list.",
    )
    date: date = described("The member's own day when it was first written.")
    text: str = described("The sentence.")
    created_at: datetime = described("When it was first written.")


@record_type(
    schedules.Streak,
    "Consecutive days with a quiz or a sentence, in the member's own time zone. A sentence that is deleted later keeps "
    "its day.",
)
class Streak:
    current: int = described(
        "Active days in a row up to today or yesterday, or farther back if freezes cover the days missed since; "
        "otherwise 0. Days that freezes bridged do not count."
    )
    longest: int = described("The longest streak so far.")
    last_active_on: date | None = described("The latest active day.")
    freezes: int = described(
        "Missed days that the streak will survive: each seventh active day in a row earns one, two at most."
    )


@record_type(quiz_leaderboard.QuizStanding, "A member's row in a day's leaderboard.")
class QuizStanding:
    user: LazyUser = field(learning.users, "The member.")
    rank: int = described(
        "The rank by correct answers, then accuracy, then fewer quizzes. Equal results share a rank: 1, 1, 3."
    )
    correct: int = described("Correct answers of the day.")
    total: int = described("Questions of the day.")
    quizzes: int = described("Quizzes of the day.")
    sentences: int = described("Practice sentences of the day.")


QuizResultConnection = connection(QuizResult, "A page of quizzes, newest day first.", edge="A quiz's place in a page.")
SentenceConnection = connection(
    Sentence, "A page of sentences, newest day first.", edge="A sentence's place in a page."
)
QuizStandingConnection = connection(
    QuizStanding, "A page of a day's leaderboard, best first.", edge="A row's place in a page."
)


# ── due cards ──

enum(
    schedules.Grade,
    "How well a member knew a word.",
    AGAIN="Not at all.",
    HARD="After some thought.",
    GOOD="Well.",
    EASY="At once.",
)


@record_type(Card, "A word that a member reviews, and when it is next due by FSRS.")
class DueCard:
    word: Word = field(learning.card_words, "The word.")
    list: WordList = field(visibility.list_of, "Its list.")
    due: datetime = described("When it is due.")
    stability: float = described("Days until the probability that the member remembers it falls to 90 %.")
    difficulty: float = described("How difficult it is for the member, 1 to 10.")
    reviews: int = described("The number of reviews so far.")


DueCardConnection = connection(DueCard, "A page of due cards, longest waiting first.", edge="A card's place in a page.")


# ── quizzes ──

enum(
    quizzes.QuizKind,
    "What a quiz asks about its words.",
    MEANING="What a word means.",
    READING="How a word is read. For lists whose words have readings.",
    CHARACTERS="How a meaning is written. For lists of Chinese words.",
)


@record_type(quizzes.QuizQuestion, "A question of a quiz.")
class QuizQuestion:
    number: int = described("Its place in the quiz, from 1.")
    prompt: str = described("The word, or the meaning, that is asked about.")
    choices: list[str] = described("The answers to choose from; one is right.")


@record_type(quizzes.QuizView, "A quiz that the service sets and grades.")
class Quiz:
    token: strawberry.ID = described("Identifies the quiz to `answerQuiz`, for this viewer only and only once.")
    list: WordList = field(visibility.list_of, "The list of its words.")
    questions: list[QuizQuestion] = described("The questions, in their order.")
    earliest_answer_at: datetime = described(
        "From when on it may be answered; later if another quiz is answered meanwhile. An answer before that is "
        "refused with `retryAfterSeconds`, and may be sent again then."
    )
    expires_at: datetime = described("An hour after the quiz was started; later answers are refused.")


@record_type(quizzes.GradedAnswer, "An answer to a question of a quiz.")
class GradedAnswer:
    number: int = described("The question's place in the quiz, from 1.")
    right: bool = described("Whether it is right.")
    word: Word = field(quizzes.answered_words, "The word that was asked about.")
    given: str = described("The answer that was given; empty if the question was skipped.")


@record_type(quizzes.QuizGraded, "The quiz was graded. Its words' cards are scheduled by the answers.")
class QuizGraded:
    result: QuizResult = described("The result, which is proven unless the list is private.")
    answers: list[GradedAnswer] = described("The answers, in the order of the questions.")
    streak: Streak = described("The member's streak including this quiz.")


# ── queries ──


@strawberry.type
class VocabularyOfUser:
    subscriptions: list[ListSubscription] = field(
        subscriptions.subscriptions,
        "The member's subscriptions, including ended ones. Visible to the member only.",
        complexity=READ,
        most_objects=50,  # of its cost: few have more, and one who does may see all
    )
    quiz_results: QuizResultConnection = field(
        visibility.quiz_results,
        "Quizzes, newest day first. Those of a private list are visible to its owner only.",
        complexity=READ,
        from_=_FROM,
        to=_TO,
    )
    sentences: SentenceConnection = field(
        learning.sentences, "Practice sentences, newest day first.", complexity=4 * READ, from_=_FROM, to=_TO
    )
    streak: Streak = field(learning.streak, "The member's streaks of active days.", complexity=READ)
    due: DueCardConnection = field(
        visibility.due,
        "The words that are due for review, longest waiting first. For the member only.",
        complexity=READ,
    )
    due_count: int = field(
        visibility.due_count,
        "The number of words that are due, counted up to 1,000. For the member only; others see 0.",
        complexity=READ,
    )


@strawberry.type
class VocabularyQuery:
    word_list: WordList | None = field(
        lists.word_list, "A list; null for another member's private one.", id="The list's id."
    )
    word_lists: WordListConnection = field(
        visibility.word_lists, "Public lists and the viewer's own private ones, by name."
    )
    upcoming_words: list[DailyWord] = field(
        daily_words.upcoming_words,
        "The words that a list shows today, in UTC, and on the days after it, if it stays as it is and each day's word "
        "is asked for. None is drawn by this. For those who may change the list.",
        complexity=4 * READ,
        most_objects=daily_words.MOST_DAYS_AHEAD,
        list="The list.",
        days=f"How many days, 1 to {daily_words.MOST_DAYS_AHEAD}.",
    )
    daily_words: list[DailyWord] = field(
        daily_words.daily_words,
        f"A day's words of the lists the viewer may see, by list name: of their own, and of {MOST_LISTS} public ones "
        "at most. `WordList.dailyWord` has the word of any list.",
        complexity=8 * READ,  # a day's items are decoded for each field that asks for it
        most_objects=MOST_LISTS,
        on="The day; default today in UTC. A future day is refused.",
    )
    quiz_leaderboard: QuizStandingConnection = field(
        visibility.quiz_leaderboard,
        "A day's members by correct answers, then accuracy, then fewer quizzes.",
        on="The day, in each member's own time zone.",
        list="Quizzes of this list only.",
        proven="True for quizzes about public lists that the service set and graded, false for others; all by default.",
        complexity=16 * READ,  # a day that nobody has asked for lately takes as many queries
    )


# ── mutations ──

input_type(
    texts.NewWord,
    "WordInput",
    "A new word: `term` for any language, or `simplified` for Chinese in one or both character sets.",
    **_WORD_TEXTS,
)


@record_type(visibility.AddedView, "Words were added.")
class WordsAdded:
    list: WordList = described("The list as it is now.")
    words: list[Word] = field(visibility.words_added, "The new words, in the order they were given.")


@strawberry.type
class VocabularyMutation:
    create_word_list = mutation(
        lists.create_word_list,
        "Creates a list, which is private unless `public` is set. Members may create up to ten private ones, editors "
        "public ones, whose names differ in more than case.",
        object_type(
            "WordListCreated", "The list was created.", list=(WordList, "The new list; `public` says who may read it.")
        ),
        show=visibility.show_changed_list,
        input_description="A new list.",
        result_description="The new list, or why there is none.",
        name="The name, 1 to 100 characters.",
        level="The difficulty of its words, 0 to 100.",
        public="Whether it is public, for everybody to read and subscribe to. Only editors can create public lists.",
    )
    add_words = mutation(
        lists.add_words,
        "Adds words to a list; a private one holds up to 500.",
        WordsAdded,
        show=visibility.show_added,
        input_description="Words for a list.",
        result_description="The new words, or why none was added.",
        list="The list.",
        words="1 to 500 words; all are added or none.",
    )
    update_word = mutation(
        lists.update_word,
        "Corrects a word. Daily words of the past show it as it is now.",
        object_type("WordUpdated", "The word was changed.", word=(Word, "The word as it is now.")),
        show=visibility.show_changed_word,
        input_description="Changes to a word. Omitted texts stay as they are; null clears an optional one.",
        result_description="The changed word, or why it was not changed.",
        word="The word.",
        revision="The revision that the editor saw: with another one, nothing is changed (CONFLICT).",
        **_WORD_TEXTS,
    )
    remove_word = mutation(
        lists.remove_word,
        "Removes a word from its list: it is not drawn again. Past daily words, quizzes and sentences keep it.",
        object_type("WordRemoved", "The word was removed.", list=(WordList, "The list without the word.")),
        show=visibility.show_changed_list,
        input_description="A word to remove.",
        result_description="The list without the word, or why it was not removed.",
        word="The word.",
    )
    update_word_list = mutation(
        lists.update_word_list,
        "Changes a list's name or level, or publishes a private list.",
        object_type("WordListUpdated", "The list was changed.", list=(WordList, "The list as it is now.")),
        show=visibility.show_changed_list,
        input_description="Changes to a list. Omitted values stay as they are; null clears the level.",
        result_description="The changed list, or why it was not changed.",
        list="The list.",
        name="The name, 1 to 100 characters.",
        level="The difficulty of its words, 0 to 100.",
        public="True publishes an editor's own private list. A public list stays public.",
        revision="The revision that the editor saw: with another one, nothing is changed (CONFLICT).",
    )
    delete_word_list = mutation(
        lists.delete_word_list,
        "Deletes a list with its words and ends its subscriptions. Quizzes stay and go on showing its name.",
        object_type("WordListDeleted", "The list was deleted.", deleted_id=(strawberry.ID, "The deleted list's id.")),
        input_description="A list to delete.",
        result_description="The deleted list's id, or why it was not deleted.",
        list="The list.",
    )
    delete_sentence = mutation(
        learning.delete_sentence,
        "Deletes a practice sentence. Its author still counts as active on its day.",
        object_type(
            "SentenceDeleted", "The sentence was deleted.", deleted_id=(strawberry.ID, "The deleted sentence's id.")
        ),
        input_description="A sentence to delete.",
        result_description="The deleted sentence's id, or why it was not deleted.",
        sentence="The sentence.",
    )
    subscribe = mutation(
        subscriptions.subscribe,
        "Subscribes to a list's daily word by email.",
        object_type(
            "Subscribed", "The subscription is active.", subscription=(ListSubscription, "The active subscription.")
        ),
        show=visibility.show_own_subscription,
        input_description="A list to subscribe to.",
        result_description="The subscription, or why there is none.",
        list="The list.",
        character_set="The spelling of its words.",
    )
    unsubscribe = mutation(
        subscriptions.unsubscribe,
        "Ends a subscription; ending it again changes nothing.",
        object_type(
            "Unsubscribed", "The subscription has ended.", subscription=(ListSubscription, "The ended subscription.")
        ),
        show=visibility.show_own_subscription,
        input_description="A list to unsubscribe from.",
        result_description="The ended subscription, or why it was not ended.",
        list="The list.",
        character_set="The spelling of the subscription to end.",
    )
    record_quiz = mutation(
        learning.record_quiz,
        "Records the result of a quiz.",
        object_type(
            "QuizRecorded",
            "A quiz was recorded.",
            result=(QuizResult, "The result."),
            streak=(Streak, "The member's streak including this quiz."),
        ),
        terms=Terms(guests="quizzes"),
        input_description="A quiz that was taken.",
        result_description="The result, or why it was not recorded.",
        list="The list of the quiz.",
        correct="Questions answered correctly, 0 to `total`.",
        total="Questions asked, 1 to 1,000.",
        on="The day it was taken, up to 31 days ago; default the member's current day.",
    )
    write_sentence = mutation(
        learning.write_sentence,
        "Writes or edits a practice sentence.",
        object_type("SentenceWritten", "A sentence was written.", sentence=(Sentence, "The sentence as it is now.")),
        input_description="A practice sentence to write or edit.",
        result_description="The sentence, or why it was not written.",
        sentence="The viewer's sentence to edit. Omit it to write a new one.",
        word="The word it practises. Null removes it from an edited sentence.",
        text="The text, 1 to 2,000 characters.",
        on="The day of a new sentence, up to 31 days ago. An edited sentence keeps its day.",
    )
    start_quiz = mutation(
        quizzes.start_quiz,
        "Starts a quiz about random words of a list.",
        Quiz,
        terms=Terms(guests="quizzes"),
        input_description="A quiz to start.",
        result_description="The quiz, or why it was not started.",
        list="The list.",
        size="The number of questions, 3 to 50.",
        kind="What is asked about the words.",
    )
    answer_quiz = mutation(
        quizzes.answer_quiz,
        "Answers a quiz, once: its result is proven unless the list is private, and its words return when they are "
        "due.",
        QuizGraded,
        terms=Terms(guests="quizzes"),
        input_description="The answers to a quiz.",
        result_description="The graded quiz, or why it was not graded.",
        token="The quiz's token.",  # noqa: S106 - a description
        answers="An answer for each question, in order: the text of a choice. Null or an empty text skips the "
        "question, which counts as wrong.",
    )
    review_word = mutation(
        learning.review_word,
        "Reviews a word. The first review of a word makes its card.",
        object_type(
            "WordReviewed",
            "The word was reviewed.",
            card=(DueCard, "The word's card with the time at which it is due next."),
        ),
        show=visibility.show_own_card,
        terms=Terms(guests="quizzes"),
        input_description="A reviewed word.",
        result_description="The word's card, or why it was not reviewed.",
        word="The word.",
        grade="How well the viewer knew it.",
    )
    request_subscription = mutation(
        subscriptions.request_subscription,
        "Emails an address a link that subscribes it to a public list's daily word. It needs no account, and stores "
        "nothing but a keyed hash until the link is confirmed.",
        object_type(
            "SubscriptionRequested",
            "The address gets a link today, if it can be reached. Confirming it subscribes the address.",
            email=(str, "The address as it was given, whether or not it is known here."),
        ),
        terms=Terms(guests=True),
        input_description="An address that wants a list's daily word. Its `idempotencyKey` is not remembered: a repeat "
        "on the same day sends nothing.",
        result_description="The address, or why it gets no link.",
        email="The address. It gets one such email a day, whose link works once, within 24 hours.",
        list="The list, which must be public.",
        character_set="The spelling of its words.",
    )
    claim_subscriptions = mutation(
        subscriptions.claim_subscriptions,
        "Moves the subscriptions of the viewer's address to the viewer: those that were confirmed without an account, "
        "or migrated. The address must be proven: by a sign-in by email, by the link that `updateProfile` sends to it, "
        "or by a token of the configured issuer with `email_verified: true`.",
        object_type(
            "SubscriptionsClaimed",
            "The subscriptions now belong to the viewer, and no longer to the address.",
            subscriptions=(list[ListSubscription], "The viewer's subscriptions that the address had."),
        ),
        show=visibility.show_claimed,
        input_description="A claim to the subscriptions of the viewer's address.",
        result_description="The subscriptions, or why none were claimed.",
    )
