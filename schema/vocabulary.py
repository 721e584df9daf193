"""Word lists, daily words, subscriptions, quizzes and sentences."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated

import strawberry

from datastore import vocabulary as vocabulary_store
from resolvers.vocabulary import daily_words, learning, quiz_leaderboard, streaks
from schema.arguments import input_type
from schema.connections import connection
from schema.fields import described, field
from schema.lazy import LazyUser
from schema.mutations import mutation
from schema.types import Node, enum, record_type

enum(
    vocabulary_store.CharacterSet,
    "Which of a word's two spellings somebody learns.",
    SIMPLIFIED="As written in mainland China and Singapore.",
    TRADITIONAL="As written in Taiwan, Hong Kong and Macau.",
)

_FROM = "Not before this day."
_TO = "Not after this day."


# ── lists and words ──


@record_type(vocabulary_store.Word, "A word to learn.")
class Word(Node):
    simplified: str = described("In simplified characters.")
    traditional: str | None = described("In traditional characters, where they differ or were given.")
    pinyin: str | None = described("How it is pronounced.")
    definition: str = described("What it means.")


@record_type(
    vocabulary_store.DailyWord, "A list's word of one day: the same for everybody, none twice before all had their day."
)
class DailyWord:
    list: Annotated[WordList, strawberry.lazy("schema.vocabulary")] = field(
        daily_words.list_of_daily_word, "The list it was drawn from."
    )
    date: date = described("The day.")
    word: Word = described("The word.")


WordConnection = connection(
    Word, "A page of a list's words, in the order they were added.", edge="A word's place in a page."
)


DailyWordConnection = connection(
    DailyWord, "A page of past daily words, newest first.", edge="A daily word's place in a page."
)


@record_type(
    vocabulary_store.WordList, "A list of words: public and kept by editors, or a member's own that nobody else sees."
)
class WordList(Node):
    name: str = described("What it is called.")
    level: int | None = described("How hard its words are, 0 to 100, on the community's own scale.")
    public: bool = described("Whether everybody may see it and subscribe to it.")
    owner: LazyUser | None = field(daily_words.owner, "Whose private list it is; null for a public one.")
    created_at: datetime = described("When it was made.")
    word_count: int = described("How many words it has.")
    subscriber_count: int = field(
        daily_words.subscriber_count, "Members who get its words by mail; in both character sets, they count once."
    )
    words: WordConnection = field(daily_words.words, "Its words, in the order they were added.")
    daily_word: DailyWord | None = field(
        daily_words.daily_word,
        "The word of a day; null for a list without words, and for a past day on which none was drawn.",
        on="The day; today in UTC unless given. A day that has not begun is refused.",
    )
    review: DailyWordConnection = field(daily_words.review, "Past daily words, newest first.", from_=_FROM, to=_TO)


WordListConnection = connection(WordList, "A page of lists, by name.", edge="A list's place in a page.")


# ── learning ──


@record_type(vocabulary_store.Subscription, "A member's wish to get a list's words by mail.", name="ListSubscription")
class ListSubscription:
    list: WordList = field(daily_words.list_of_subscription, "The list.")
    character_set: vocabulary_store.CharacterSet = described("The spelling of its words in the mail.")
    active: bool = described("Whether it goes on; one that has ended stays in the member's history.")
    since: datetime = described("When it began.")


@record_type(vocabulary_store.QuizResult, "How one quiz went.")
class QuizResult(Node):
    user: LazyUser = field(learning.users_of_results, "Who answered.")
    list: WordList = field(learning.list_of_result, "The list it was about.")
    date: date = described("The member's own day, decided when it was submitted and never changed.")
    correct: int = described("Questions answered correctly.")
    total: int = described("Questions asked.")
    submitted_at: datetime = described("When it was submitted.")


@record_type(vocabulary_store.Sentence, "A practice sentence.")
class Sentence(Node):
    user: LazyUser = field(learning.users_of_sentences, "Its author.")
    word: Word | None = field(
        learning.word_of_sentence, "The word it practises; null to others when it is of a private list."
    )
    date: date = described("The member's own day when it was first written.")
    text: str = described("What was written.")
    created_at: datetime = described("When it was first written.")


@record_type(streaks.Streak, "Runs of days with a quiz or a sentence, in the member's own time zone.")
class Streak:
    current: int = described("Days up to today; not broken while yesterday was active. 0 when it is.")
    longest: int = described("The longest run so far.")
    last_active_on: date | None = described("The latest active day.")


@record_type(quiz_leaderboard.QuizStanding, "One member's row in a day's leaderboard.")
class QuizStanding:
    user: LazyUser = field(learning.users_of_standings, "The member.")
    rank: int = described(
        "By correct answers, then accuracy, then fewer quizzes. Equals share one, and the next counts them: 1, 1, 3."
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
        daily_words.subscriptions, "Lists the member gets by mail, ended ones too. Shown to the member only."
    )
    quiz_results: QuizResultConnection = field(
        learning.quiz_results,
        "Quizzes, newest day first; those of a private list to its owner only.",
        from_=_FROM,
        to=_TO,
    )
    sentences: SentenceConnection = field(
        learning.sentences, "Practice sentences, newest day first.", from_=_FROM, to=_TO
    )
    streak: Streak = field(learning.streak, "Runs of active days.")


# ── queries ──


@strawberry.type
class VocabularyQuery:
    word_list: WordList | None = field(
        daily_words.word_list, "A list; null for somebody else's private one.", id="The list's id."
    )
    word_lists: WordListConnection = field(
        daily_words.word_lists, "Public lists and, to a member, their own private ones, by name."
    )
    daily_words: list[DailyWord] = field(
        daily_words.daily_words,
        "The words of a day, of all lists that the viewer may see, by the lists' names.",
        on="The day; today in UTC unless given. A day that has not begun is refused.",
    )
    quiz_leaderboard: QuizStandingConnection = field(
        learning.quiz_leaderboard,
        "A day's members by correct answers, then accuracy, then fewer quizzes.",
        on="The day, as each member's own zone dates it.",
        list="Quizzes of this list only.",
    )


# ── mutations ──

input_type(
    daily_words.NewWord,
    "WordInput",
    "A new word.",
    simplified="In simplified characters, 1 to 100.",
    traditional="In traditional characters, up to 100.",
    pinyin="How it is pronounced, up to 200 characters.",
    definition="What it means, 1 to 1,000 characters.",
)


@strawberry.type(description="A list was made.")
class WordListCreated:
    list: WordList = described("The new list.")


@record_type(vocabulary_store.AddedWords, "Words were added.")
class WordsAdded:
    list: WordList = described("The list as it is now.")
    words: list[Word] = field(daily_words.words_added, "The new words, in the order they were given.")


@strawberry.type(description="The list's words will come by mail.")
class Subscribed:
    subscription: ListSubscription = described("The active subscription.")


@strawberry.type(description="The list's words will no longer come by mail.")
class Unsubscribed:
    subscription: ListSubscription = described("The ended subscription.")


@strawberry.type(description="A quiz was recorded.")
class QuizRecorded:
    result: QuizResult = described("The result.")
    streak: Streak = described("The member's streak with it.")


@strawberry.type(description="A sentence was written.")
class SentenceWritten:
    sentence: Sentence = described("The sentence as it is now.")


@strawberry.type
class VocabularyMutation:
    create_word_list = mutation(
        daily_words.create_word_list,
        "Makes a list: editors public ones, members up to ten private ones.",
        WordListCreated,
        input_description="A new list.",
        result_description="The new list, or why there is none.",
        name="What it is called, 1 to 100 characters.",
        level="How hard its words are, 0 to 100.",
        public="Public lists are for editors to make.",
    )
    add_words = mutation(
        daily_words.add_words,
        "Adds words to a list; a private one holds up to 500.",
        WordsAdded,
        input_description="Words for a list.",
        result_description="The new words, or why none was added.",
        list="The list.",
        words="1 to 500 words; all are added or none.",
    )
    subscribe = mutation(
        daily_words.subscribe,
        "Asks for a list's word by mail, every day.",
        Subscribed,
        input_description="A list to get by mail.",
        result_description="The subscription, or why there is none.",
        list="The list.",
        character_set="The spelling of its words.",
    )
    unsubscribe = mutation(
        daily_words.unsubscribe,
        "Ends a subscription; ending it again changes nothing.",
        Unsubscribed,
        input_description="A list to get no longer.",
        result_description="The ended subscription, or why it was not ended.",
        list="The list.",
        character_set="The spelling that was subscribed to.",
    )
    record_quiz = mutation(
        learning.record_quiz,
        "Records how a quiz went.",
        QuizRecorded,
        input_description="A quiz that was taken.",
        result_description="The result, or why it was not recorded.",
        list="The list it was about.",
        correct="Questions answered correctly, 0 to `total`.",
        total="Questions asked, 1 to 1,000.",
        on="The day it was taken, up to 31 days ago; the member's own day now unless given.",
    )
    write_sentence = mutation(
        learning.write_sentence,
        "Writes a practice sentence, or amends one.",
        SentenceWritten,
        input_description="A practice sentence, new or amended.",
        result_description="The sentence, or why it was not written.",
        sentence="One's own sentence to amend; a new one unless given.",
        word="The word it practises; null takes it away from an amended sentence.",
        text="What it says, 1 to 2,000 characters.",
        on="The day of a new sentence, up to 31 days ago; an amended one keeps its day.",
    )
