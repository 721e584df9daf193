"""Word lists, daily words, subscriptions, quizzes and sentences."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated

import strawberry

from datastore import vocabulary as records
from resolvers.vocabulary import daily_words as vocabulary
from resolvers.vocabulary import learning, streaks
from resolvers.vocabulary import quiz_leaderboard as quiz_days
from schema.lazy import LazyUser
from schema.shapes import (
    IDEMPOTENCY_KEY,
    Connection,
    Edge,
    Node,
    answers,
    described,
    enum,
    field,
    mutation,
    shape,
    unset,
)

enum(
    records.CharacterSet,
    "Which of a word's two spellings somebody learns.",
    SIMPLIFIED="As written in mainland China and Singapore.",
    TRADITIONAL="As written in Taiwan, Hong Kong and Macau.",
)

_FROM = "Not before this day."
_TO = "Not after this day."


# ── lists and words ──


@shape(records.Word, "A word to learn.")
class Word(Node):
    simplified: str = described("In simplified characters.")
    traditional: str | None = described("In traditional characters, where they differ or were given.")
    pinyin: str | None = described("How it is pronounced.")
    definition: str = described("What it means.")


@shape(records.DailyWord, "A list's word of one day: the same for everybody, none twice before all had their day.")
class DailyWord:
    list: Annotated[WordList, strawberry.lazy("schema.vocabulary")] = field(
        vocabulary.list_of_daily_word, "The list it was drawn from."
    )
    date: date = described("The day.")
    word: Word = described("The word.")


@strawberry.type(description="A word's place in a page.")
class WordEdge(Edge[Word]):
    pass


@strawberry.type(description="A page of a list's words, in the order they were added.")
class WordConnection(Connection[WordEdge, Word]):
    pass


@strawberry.type(description="A daily word's place in a page.")
class DailyWordEdge(Edge[DailyWord]):
    pass


@strawberry.type(description="A page of past daily words, newest first.")
class DailyWordConnection(Connection[DailyWordEdge, DailyWord]):
    pass


@shape(records.WordList, "A list of words: public and kept by editors, or a member's own that nobody else sees.")
class WordList(Node):
    name: str = described("What it is called.")
    level: int | None = described("How hard its words are, 0 to 100, on the community's own scale.")
    public: bool = described("Whether everybody may see it and subscribe to it.")
    owner: LazyUser | None = field(vocabulary.owner, "Whose private list it is; null for a public one.")
    created_at: datetime = described("When it was made.")
    word_count: int = described("How many words it has.")
    subscriber_count: int = field(
        vocabulary.subscriber_count, "Members who get its words by mail; in both character sets, they count once."
    )
    words: WordConnection = field(vocabulary.words, "Its words, in the order they were added.")
    daily_word: DailyWord | None = field(
        vocabulary.daily_word,
        "The word of a day; null for a list without words, and for a past day on which none was drawn.",
        on="The day; today in UTC unless given. A day that has not begun is refused.",
    )
    review: DailyWordConnection = field(vocabulary.review, "Past daily words, newest first.", from_=_FROM, to=_TO)


@strawberry.type(description="A list's place in a page.")
class WordListEdge(Edge[WordList]):
    pass


@strawberry.type(description="A page of lists, by name.")
class WordListConnection(Connection[WordListEdge, WordList]):
    pass


# ── learning ──


@shape(records.Subscription, "A member's wish to get a list's words by mail.", name="ListSubscription")
class ListSubscription:
    list: WordList = field(vocabulary.list_of_subscription, "The list.")
    character_set: records.CharacterSet = described("The spelling of its words in the mail.")
    active: bool = described("Whether it goes on; one that has ended stays in the member's history.")
    since: datetime = described("When it began.")


@shape(records.QuizResult, "How one quiz went.")
class QuizResult(Node):
    user: LazyUser = field(learning.users_of_results, "Who answered.")
    list: WordList = field(learning.list_of_result, "The list it was about.")
    date: date = described("The member's own day, decided when it was submitted and never changed.")
    correct: int = described("Questions answered correctly.")
    total: int = described("Questions asked.")
    submitted_at: datetime = described("When it was submitted.")


@shape(records.Sentence, "A practice sentence.")
class Sentence(Node):
    user: LazyUser = field(learning.users_of_sentences, "Its author.")
    word: Word | None = field(
        learning.word_of_sentence, "The word it practises; null to others when it is of a private list."
    )
    date: date = described("The member's own day when it was first written.")
    text: str = described("What was written.")
    created_at: datetime = described("When it was first written.")


@shape(streaks.Streak, "Runs of days with a quiz or a sentence, in the member's own time zone.")
class Streak:
    current: int = described("Days up to today; not broken while yesterday was active. 0 when it is.")
    longest: int = described("The longest run so far.")
    last_active_on: date | None = described("The latest active day.")


@shape(quiz_days.QuizStanding, "One member's row in a day's leaderboard.")
class QuizStanding:
    user: LazyUser = field(learning.users_of_standings, "The member.")
    rank: int = described(
        "By correct answers, then accuracy, then fewer quizzes. Equals share one, and the next counts them: 1, 1, 3."
    )
    correct: int = described("Correct answers of the day.")
    total: int = described("Questions of the day.")
    quizzes: int = described("Quizzes of the day.")
    sentences: int = described("Practice sentences of the day.")


@strawberry.type(description="A quiz's place in a page.")
class QuizResultEdge(Edge[QuizResult]):
    pass


@strawberry.type(description="A page of quizzes, newest day first.")
class QuizResultConnection(Connection[QuizResultEdge, QuizResult]):
    pass


@strawberry.type(description="A sentence's place in a page.")
class SentenceEdge(Edge[Sentence]):
    pass


@strawberry.type(description="A page of sentences, newest day first.")
class SentenceConnection(Connection[SentenceEdge, Sentence]):
    pass


@strawberry.type(description="A row's place in a page.")
class QuizStandingEdge(Edge[QuizStanding]):
    pass


@strawberry.type(description="A page of a day's leaderboard, best first.")
class QuizStandingConnection(Connection[QuizStandingEdge, QuizStanding]):
    pass


@strawberry.type
class VocabularyOfUser:
    subscriptions: list[ListSubscription] = field(
        vocabulary.subscriptions, "Lists the member gets by mail, ended ones too. Shown to the member only."
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


# ── asking ──


@strawberry.type
class VocabularyQuery:
    word_list: WordList | None = field(
        vocabulary.word_list, "A list; null for somebody else's private one.", id="The list's id."
    )
    word_lists: WordListConnection = field(
        vocabulary.word_lists, "Public lists and, to a member, their own private ones, by name."
    )
    daily_words: list[DailyWord] = field(
        vocabulary.daily_words,
        "The words of a day, of all lists that the viewer may see, by the lists' names.",
        on="The day; today in UTC unless given. A day that has not begun is refused.",
    )
    quiz_leaderboard: QuizStandingConnection = field(
        learning.quiz_leaderboard,
        "A day's members by correct answers, then accuracy, then fewer quizzes.",
        on="The day, as each member's own zone dates it.",
        list="Quizzes of this list only.",
    )


# ── doing ──


@strawberry.input(description="A new list.")
class CreateWordListInput:
    name: str = described("What it is called, 1 to 100 characters.")
    level: int | None = unset("How hard its words are, 0 to 100.")
    public: bool = strawberry.field(description="Public lists are for editors to make.", default=False)
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.input(description="A new word.")
class WordInput:
    simplified: str = described("In simplified characters, 1 to 100.")
    traditional: str | None = unset("In traditional characters, up to 100.")
    pinyin: str | None = unset("How it is pronounced, up to 200 characters.")
    definition: str = described("What it means, 1 to 1,000 characters.")


@strawberry.input(description="Words for a list.")
class AddWordsInput:
    list: strawberry.ID = described("The list.")
    words: list[WordInput] = described("1 to 500 words; all are added or none.")
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.input(description="A list to get by mail.")
class SubscribeInput:
    list: strawberry.ID = described("The list.")
    character_set: records.CharacterSet = strawberry.field(
        description="The spelling of its words.", default=records.CharacterSet.SIMPLIFIED
    )
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.input(description="A list to get no longer.")
class UnsubscribeInput:
    list: strawberry.ID = described("The list.")
    character_set: records.CharacterSet = strawberry.field(
        description="The spelling that was subscribed to.", default=records.CharacterSet.SIMPLIFIED
    )
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.input(description="A quiz that was taken.")
class RecordQuizInput:
    list: strawberry.ID = described("The list it was about.")
    correct: int = described("Questions answered correctly, 0 to `total`.")
    total: int = described("Questions asked, 1 to 1,000.")
    on: date | None = unset("The day it was taken, up to 31 days ago; the member's own day now unless given.")
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.input(description="A practice sentence, new or amended.")
class WriteSentenceInput:
    sentence: strawberry.ID | None = unset("One's own sentence to amend; a new one unless given.")
    word: strawberry.ID | None = unset("The word it practises; null takes it away from an amended sentence.")
    text: str = described("What it says, 1 to 2,000 characters.")
    on: date | None = unset("The day of a new sentence, up to 31 days ago; an amended one keeps its day.")
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.type(description="A list was made.")
class WordListCreated:
    list: WordList = described("The new list.")


@shape(records.AddedWords, "Words were added.")
class WordsAdded:
    list: WordList = described("The list as it is now.")
    words: list[Word] = field(vocabulary.words_added, "The new words, in the order they were given.")


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


CreateWordListResult = answers("CreateWordListResult", WordListCreated, "The new list, or why there is none.")
AddWordsResult = answers("AddWordsResult", WordsAdded, "The new words, or why none was added.")
SubscribeResult = answers("SubscribeResult", Subscribed, "The subscription, or why there is none.")
UnsubscribeResult = answers("UnsubscribeResult", Unsubscribed, "The ended subscription, or why it was not ended.")
RecordQuizResult = answers("RecordQuizResult", QuizRecorded, "The result, or why it was not recorded.")
WriteSentenceResult = answers("WriteSentenceResult", SentenceWritten, "The sentence, or why it was not written.")


@strawberry.type
class VocabularyMutation:
    create_word_list: CreateWordListResult = mutation(
        vocabulary.create_word_list,
        CreateWordListInput,
        WordListCreated,
        "Makes a list: editors public ones, members up to ten private ones.",
    )
    add_words: AddWordsResult = mutation(
        vocabulary.add_words,
        AddWordsInput,
        WordsAdded,
        "Adds words to a list; a private one holds up to 500.",
    )
    subscribe: SubscribeResult = mutation(
        vocabulary.subscribe, SubscribeInput, Subscribed, "Asks for a list's word by mail, every day."
    )
    unsubscribe: UnsubscribeResult = mutation(
        vocabulary.unsubscribe, UnsubscribeInput, Unsubscribed, "Ends a subscription; ending it again changes nothing."
    )
    record_quiz: RecordQuizResult = mutation(
        learning.record_quiz, RecordQuizInput, QuizRecorded, "Records how a quiz went."
    )
    write_sentence: WriteSentenceResult = mutation(
        learning.write_sentence, WriteSentenceInput, SentenceWritten, "Writes a practice sentence, or amends one."
    )
