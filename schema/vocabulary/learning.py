"""Quizzes that the service asks, and words that are due for review."""

from __future__ import annotations

from datetime import datetime

import strawberry

from datastore.vocabulary.quizzes import Card
from resolvers.vocabulary import learning, quizzes, schedules, subscriptions, visibility
from resolvers.whole.mutations import Terms
from schema.framework.declarations import READ, connection, described, enum, field, mutation, object_type, record_type
from schema.vocabulary.lists import ListSubscription, QuizResult, Streak, Word, WordList

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


@strawberry.type
class LearningOfUser:
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


# ── mutations ──


@strawberry.type
class LearningMutation:
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


# ── address subscriptions ──
# Subscriptions of email addresses without an account.


@strawberry.type
class AddressSubscriptionMutation:
    request_subscription = mutation(
        subscriptions.request_subscription,
        "Emails an address a link that subscribes it to a public list's daily word. It needs no "
        "account, and stores nothing but a keyed hash until the link is confirmed.",
        object_type(
            "SubscriptionRequested",
            "A link was sent to the address today. Confirming it subscribes the address.",
            email=(str, "The address as it was given, whether or not it is known here."),
        ),
        terms=Terms(guests=True),
        input_description="An address that wants a list's daily word.",
        result_description="Confirmation that the email was sent today, or why it was not.",
        email="The address. It gets one such email a day, whose link works once, within 24 hours.",
        list="The list, which must be public.",
        character_set="The spelling of its words.",
    )
    claim_subscriptions = mutation(
        subscriptions.claim_subscriptions,
        "Moves the subscriptions of the viewer's address to the viewer: those that were confirmed without an account, "
        "or migrated. The address must be proven: by the link that `updateProfile` sends to it, or by a token of the "
        "configured issuer with `email_verified: true`.",
        object_type(
            "SubscriptionsClaimed",
            "The subscriptions now belong to the viewer, and no longer to the address.",
            subscriptions=(list[ListSubscription], "The viewer's subscriptions that the address had."),
        ),
        input_description="A claim to the subscriptions of the viewer's address.",
        result_description="The subscriptions, or why none were claimed.",
    )
