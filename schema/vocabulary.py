"""Word lists, daily words, subscriptions, quizzes and sentences."""

from __future__ import annotations

from datetime import date, datetime

import strawberry

from datastore import vocabulary as vocabulary_store
from resolvers.vocabulary import daily_words, learning, lists, quiz_leaderboard, streaks, subscriptions
from schema.arguments import input_type
from schema.connections import connection
from schema.fields import described, field
from schema.lazy import LazyUser
from schema.mutations import mutation
from schema.types import Node, enum, record_type

enum(
    vocabulary_store.CharacterSet,
    "One of the two spellings of a word.",
    SIMPLIFIED="As written in mainland China and Singapore.",
    TRADITIONAL="As written in Taiwan, Hong Kong and Macau.",
)

_FROM = "The first day to include."
_TO = "The last day to include."


# ── lists and words ──


@record_type(vocabulary_store.Word, "A word to learn.")
class Word(Node):
    simplified: str = described("In simplified characters.")
    traditional: str | None = described("In traditional characters, if they were given.")
    pinyin: str | None = described("How it is pronounced.")
    definition: str = described("What it means.")


@record_type(
    vocabulary_store.DailyWord,
    "A list's word of one day. It is the same for everyone, and no word is repeated before all have been used.",
)
class DailyWord:
    list: WordList = field(daily_words.daily_word_list, "The list it was drawn from.")
    date: date = described("The day.")
    word: Word = described("The word.")


WordConnection = connection(
    Word, "A page of a list's words, in the order they were added.", edge="A word's place in a page."
)
DailyWordConnection = connection(
    DailyWord, "A page of past daily words, newest first.", edge="A daily word's place in a page."
)


@record_type(
    vocabulary_store.WordList, "A list of words: a public one, maintained by editors, or a member's private one."
)
class WordList(Node):
    name: str = described("Its name.")
    level: int | None = described("The difficulty of its words, 0 to 100, on the community's own scale.")
    public: bool = described("Whether everyone may see it and subscribe to it.")
    owner: LazyUser | None = field(lists.owner, "The owner of a private list; null for a public one.")
    created_at: datetime = described("When it was created.")
    word_count: int = described("The number of words.")
    subscriber_count: int = field(
        lists.subscriber_count, "The number of subscribed members. A member with both character sets counts once."
    )
    words: WordConnection = field(lists.words, "Its words, in the order they were added.")
    daily_word: DailyWord | None = field(
        daily_words.daily_word,
        "The word of a day; null if the list has no words, or if none was drawn on a past day.",
        on="The day; default today in UTC. A future day is refused.",
    )
    review: DailyWordConnection = field(daily_words.review, "Past daily words, newest first.", from_=_FROM, to=_TO)


WordListConnection = connection(WordList, "A page of lists, by name.", edge="A list's place in a page.")


# ── learning ──


@record_type(
    vocabulary_store.Subscription, "A member's subscription to a list's words by email.", name="ListSubscription"
)
class ListSubscription:
    list: WordList = field(subscriptions.subscription_list, "The list.")
    character_set: vocabulary_store.CharacterSet = described("The spelling of its words in the email.")
    active: bool = described("Whether it is active; an ended one stays in the member's history.")
    since: datetime = described("When it began.")


@record_type(vocabulary_store.QuizResult, "The result of one quiz.")
class QuizResult(Node):
    user: LazyUser = field(learning.quiz_result_users, "The member who took the quiz.")
    list: WordList = field(learning.quiz_result_list, "The list of the quiz.")
    date: date = described("The member's own day, set on submission and never changed.")
    correct: int = described("Questions answered correctly.")
    total: int = described("Questions asked.")
    submitted_at: datetime = described("When it was submitted.")


@record_type(vocabulary_store.Sentence, "A practice sentence.")
class Sentence(Node):
    user: LazyUser = field(learning.sentence_users, "Its author.")
    word: Word | None = field(
        learning.sentence_word, "The word it practises; for other members, null if it is from a private list."
    )
    date: date = described("The member's own day when it was first written.")
    text: str = described("The sentence.")
    created_at: datetime = described("When it was first written.")


@record_type(streaks.Streak, "Consecutive days with a quiz or a sentence, in the member's own time zone.")
class Streak:
    current: int = described("Consecutive active days up to today or yesterday; otherwise 0.")
    longest: int = described("The longest streak so far.")
    last_active_on: date | None = described("The latest active day.")


@record_type(quiz_leaderboard.QuizStanding, "A member's row in a day's leaderboard.")
class QuizStanding:
    user: LazyUser = field(learning.quiz_standing_users, "The member.")
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


@strawberry.type
class VocabularyOfUser:
    subscriptions: list[ListSubscription] = field(
        subscriptions.subscriptions, "The member's subscriptions, including ended ones. Visible to the member only."
    )
    quiz_results: QuizResultConnection = field(
        learning.quiz_results,
        "Quizzes, newest day first. Those of a private list are visible to its owner only.",
        from_=_FROM,
        to=_TO,
    )
    sentences: SentenceConnection = field(
        learning.sentences, "Practice sentences, newest day first.", from_=_FROM, to=_TO
    )
    streak: Streak = field(learning.streak, "The member's streaks of active days.")


# ── queries ──


@strawberry.type
class VocabularyQuery:
    word_list: WordList | None = field(
        lists.word_list, "A list; null for another member's private one.", id="The list's id."
    )
    word_lists: WordListConnection = field(lists.word_lists, "Public lists and the viewer's own private ones, by name.")
    daily_words: list[DailyWord] = field(
        daily_words.daily_words,
        "A day's words of all lists the viewer may see, by list name.",
        on="The day; default today in UTC. A future day is refused.",
    )
    quiz_leaderboard: QuizStandingConnection = field(
        learning.quiz_leaderboard,
        "A day's members by correct answers, then accuracy, then fewer quizzes.",
        on="The day, in each member's own time zone.",
        list="Quizzes of this list only.",
    )


# ── mutations ──

input_type(
    lists.NewWord,
    "WordInput",
    "A new word.",
    simplified="In simplified characters, 1 to 100.",
    traditional="In traditional characters, up to 100.",
    pinyin="How it is pronounced, up to 200 characters.",
    definition="What it means, 1 to 1,000 characters.",
)


@strawberry.type(description="The list was created.")
class WordListCreated:
    list: WordList = described("The new list.")


@record_type(vocabulary_store.AddedWords, "Words were added.")
class WordsAdded:
    list: WordList = described("The list as it is now.")
    words: list[Word] = field(lists.words_added, "The new words, in the order they were given.")


@strawberry.type(description="The subscription is active.")
class Subscribed:
    subscription: ListSubscription = described("The active subscription.")


@strawberry.type(description="The subscription has ended.")
class Unsubscribed:
    subscription: ListSubscription = described("The ended subscription.")


@strawberry.type(description="A quiz was recorded.")
class QuizRecorded:
    result: QuizResult = described("The result.")
    streak: Streak = described("The member's streak including this quiz.")


@strawberry.type(description="A sentence was written.")
class SentenceWritten:
    sentence: Sentence = described("The sentence as it is now.")


@strawberry.type
class VocabularyMutation:
    create_word_list = mutation(
        lists.create_word_list,
        "Creates a list: a public one for editors, or one of up to ten private ones for members.",
        WordListCreated,
        input_description="A new list.",
        result_description="The new list, or why there is none.",
        name="The name, 1 to 100 characters.",
        level="The difficulty of its words, 0 to 100.",
        public="Whether it is public. Only editors can create public lists.",
    )
    add_words = mutation(
        lists.add_words,
        "Adds words to a list; a private one holds up to 500.",
        WordsAdded,
        input_description="Words for a list.",
        result_description="The new words, or why none was added.",
        list="The list.",
        words="1 to 500 words; all are added or none.",
    )
    subscribe = mutation(
        subscriptions.subscribe,
        "Subscribes to a list's daily word by email.",
        Subscribed,
        input_description="A list to subscribe to.",
        result_description="The subscription, or why there is none.",
        list="The list.",
        character_set="The spelling of its words.",
    )
    unsubscribe = mutation(
        subscriptions.unsubscribe,
        "Ends a subscription; ending it again changes nothing.",
        Unsubscribed,
        input_description="A list to unsubscribe from.",
        result_description="The ended subscription, or why it was not ended.",
        list="The list.",
        character_set="The spelling of the subscription to end.",
    )
    record_quiz = mutation(
        learning.record_quiz,
        "Records the result of a quiz.",
        QuizRecorded,
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
        SentenceWritten,
        input_description="A practice sentence to write or edit.",
        result_description="The sentence, or why it was not written.",
        sentence="The viewer's sentence to edit. Omit it to write a new one.",
        word="The word it practises. Null removes it from an edited sentence.",
        text="The text, 1 to 2,000 characters.",
        on="The day of a new sentence, up to 31 days ago. An edited sentence keeps its day.",
    )
