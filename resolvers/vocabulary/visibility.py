"""What a viewer sees of vocabulary: records that may be private become one of the types here before a field shows them.

Everybody sees public lists, which editors change; a private one is its owner's alone. A deleted list is seen by nobody,
except that quizzes and subscriptions go on naming it: they show its empty record. What belongs to a list is shown with
it: whoever has a `ShownList` may see its words and daily words. Quizzes of a private list, cards and subscriptions are
shown to their member only; they are left out when pages are read, so none has holes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Final, NewType, Protocol, TypeVar

from datastore.dynamo import Page, Window, key_text
from datastore.people.profiles import Profile
from datastore.refusals import NotFound
from datastore.vocabulary import learning, lists, quizzes
from datastore.vocabulary.daily import DailyWord
from datastore.vocabulary.learning import DateRange, QuizResult
from datastore.vocabulary.lists import WordList
from datastore.vocabulary.quizzes import Card
from datastore.vocabulary.subscriptions import Claimed, Subscription
from datastore.vocabulary.words import AddedWords, Word, read_added_words, read_words_page
from resolvers.requests.context import Context, NodeOf, Role
from resolvers.vocabulary.cache import VocabularyCache, load_screen
from resolvers.vocabulary.quiz_leaderboard import QuizLeaderboards, QuizStanding, Selection
from resolvers.vocabulary.schedules import newest_date

# ── what belongs to a list ──

AS_STORED: Final[Mapping[str, str]] = {
    "Sentence": "Public; its word is shown to whoever sees the word's list.",
    "Streak": "Public.",
    "Quiz": "Made for the viewer.",
    "QuizQuestion": "Made for the viewer.",
    "GradedAnswer": "The viewer's own.",
    "QuizGraded": "The viewer's own.",
    "WordList.subscriberCount": "Shown with its list.",
    "WordList.subscribableByEmail": "Shown with its list.",
}
"""What fields show without passing here, and why that gives nothing away."""

ShownList = NewType("ShownList", WordList)
ShownWord = NewType("ShownWord", Word)
ShownDailyWord = NewType("ShownDailyWord", DailyWord)
ShownQuizResult = NewType("ShownQuizResult", QuizResult)
ShownQuizStanding = NewType("ShownQuizStanding", QuizStanding)
ShownCard = NewType("ShownCard", Card)
ShownSubscription = NewType("ShownSubscription", Subscription)


T = TypeVar("T")


class _OfList(Protocol):
    @property
    def list(self) -> str: ...


# ── lists ──


def show_list(ctx: Context, word_list: WordList | None) -> ShownList | None:
    """A list, if the viewer may see it."""
    return ShownList(word_list) if word_list is not None and word_list.visible_to(ctx.viewer.member_id) else None


async def load_list(ctx: Context, list_id: str, age: float | None = None) -> ShownList | None:
    return show_list(ctx, await ctx.services.get(VocabularyCache).lists.load(key_text(list_id), age))


async def list_of(ctx: Context, record: _OfList, /) -> ShownList:
    """The list that a record names, which may be the empty record of a deleted one."""
    word_list = await ctx.services.get(VocabularyCache).lists.load(record.list)
    if word_list is None or not word_list.was_visible_to(ctx.viewer.member_id):
        raise NotFound
    return ShownList(word_list)


async def require_input_list(ctx: Context, list_id: str) -> ShownList:
    """The list that an input names. Another member's private list is refused like an id without a list."""
    return named_by_input(await load_list(ctx, list_id), "list")


def named_by_input(found: T | None, what: str) -> T:
    """What the field `what` of an input names. NotFound if there is none, or none for the viewer."""
    if found is None:
        raise NotFound(f"There is no such {what}.", path=("input", what))
    return found


def require_editable(ctx: Context, word_list: WordList) -> None:
    """Refuse a viewer who may see the list but not change it."""
    if word_list.public:
        ctx.with_role(Role.EDITOR)
    else:
        ctx.member()


async def word_lists(ctx: Context, /, *, window: Window) -> Page[ShownList]:
    """Public lists and the viewer's own private ones, merged by name."""
    page = await lists.read_lists_page(ctx.table, ctx.viewer.member_id, window)
    return page.map(map(ShownList, page.nodes))


async def show_changed_list(_: Context, word_list: WordList) -> ShownList:
    """The answer to whoever was allowed to change it."""
    return ShownList(word_list)


# ── words ──


async def load_word(ctx: Context, list_id: str, ordinal: int) -> ShownWord | None:
    """A word of a list that the viewer may see, also one that was removed from it."""
    word_list = await load_list(ctx, list_id)
    if word_list is None:
        return None
    if ordinal >= word_list.next_ordinal:  # the cached list may be older than the word
        newer = await ctx.services.get(VocabularyCache).lists.load(list_id, 0)
        if newer is None or ordinal >= newer.next_ordinal:
            return None
    word = await ctx.services.get(VocabularyCache).words.load((list_id, ordinal))
    return None if word is None else ShownWord(word)


async def load_own_words(ctx: Context, keys: Sequence[tuple[str, int]]) -> list[ShownWord]:
    words = await ctx.services.get(VocabularyCache).words.load_many(keys)
    return [show_own_word(key, word) for key, word in zip(keys, words, strict=True)]


def show_own_word(key: tuple[str, int], word: Word | None) -> ShownWord:
    """A word that a record of the viewer names; in place of a deleted one, a word that says so."""
    return ShownWord(word or Word(*key, "…", "This word was deleted with its list."))


async def words(ctx: Context, word_list: ShownList, /, *, window: Window) -> Page[ShownWord]:
    page = await read_words_page(ctx.table, word_list, window)
    return page.map(map(ShownWord, page.nodes))


def word_revision(_: Context, word: ShownWord, /) -> int:
    return word.revision or 0


async def show_changed_word(_: Context, word: Word) -> ShownWord:
    """The answer to whoever was allowed to change it."""
    return ShownWord(word)


@dataclass(frozen=True, slots=True)
class AddedView:
    """The answer to whoever was allowed to add words."""

    added: AddedWords

    @property
    def list(self) -> ShownList:
        return ShownList(self.added.list)


async def show_added(_: Context, added: AddedWords) -> AddedView:
    return AddedView(added)


async def words_added(ctx: Context, view: AddedView, /) -> Sequence[ShownWord]:
    return [ShownWord(word) for word in await read_added_words(ctx.table, view.added)]


# ── daily words ──


def show_daily_word(_: ShownList, daily: DailyWord) -> ShownDailyWord:
    return ShownDailyWord(daily)


def show_current_word(daily: ShownDailyWord, current: Word | None) -> ShownWord:
    """The word as it is now, or as it was drawn."""
    return ShownWord(current or daily.word)


# ── quizzes ──


def show_quiz_result(ctx: Context, result: QuizResult | None) -> ShownQuizResult | None:
    """A result, if its list is not private or it is the viewer's own."""
    if result is None or (result.private and not ctx.viewer.is_user(result.user)):
        return None
    return ShownQuizResult(result)


def show_own_result(result: QuizResult) -> ShownQuizResult:
    """To the member who has just made it."""
    return ShownQuizResult(result)


async def quiz_results(
    ctx: Context, profile: Profile, /, *, from_: date | None = None, to: date | None = None, window: Window
) -> Page[ShownQuizResult]:
    """Newest day first; without those of private lists for others, whose cursors are of the same results."""
    dates, own = DateRange(from_, to), ctx.viewer.is_user(profile.user)
    request = window.open(f"quizzes {profile.user} {dates} {own}")
    screen = await load_screen(ctx, profile.user, dates, request)
    page = await learning.read_quiz_page(ctx.table, profile.user, dates, request, screen, all_lists=own)
    return page.map(map(ShownQuizResult, page.nodes))


async def quiz_leaderboard(
    ctx: Context,
    /,
    *,
    on: date,
    list: Annotated[str, NodeOf("WordList")] | None = None,  # noqa: A002 - the argument's public name
    proven: bool | None = None,
    window: Window,
) -> Page[ShownQuizStanding]:
    """A day's members, best first. A list that is hidden from the viewer looks like one without quizzes.

    A day that has begun nowhere has none, and is not looked for.
    """
    request = window.open(f"quiz leaderboard {on} {list or ''}" + ("" if proven is None else f" {proven}"))
    if on > newest_date(ctx.now()) or (list is not None and await load_list(ctx, list) is None):
        return Page.cut((), request)
    page = (await ctx.services.get(QuizLeaderboards).load(on)).page(Selection(list, proven), request)
    return page.map(map(ShownQuizStanding, page.nodes))


# ── cards and subscriptions: for their member only ──


async def due(ctx: Context, profile: Profile, /, *, window: Window) -> Page[ShownCard]:
    if not ctx.viewer.is_user(profile.user):
        return Page.cut((), window.open(f"due {profile.user}"))
    page = await quizzes.read_due_page(ctx.table, profile.user, ctx.now(), window)
    return page.map(map(ShownCard, page.nodes))


async def due_count(ctx: Context, profile: Profile, /) -> int:
    if not ctx.viewer.is_user(profile.user):
        return 0
    return await quizzes.count_due(ctx.table, profile.user, ctx.now())


async def show_own_card(_: Context, card: Card) -> ShownCard:
    """The answer to the member who reviewed it."""
    return ShownCard(card)


async def show_own_subscription(_: Context, subscription: Subscription) -> ShownSubscription:
    """The answer to the member who changed it."""
    return ShownSubscription(subscription)


def show_subscriptions(ctx: Context, subscribed: Sequence[Subscription]) -> list[ShownSubscription]:
    """Those of the viewer."""
    return [ShownSubscription(each) for each in subscribed if ctx.viewer.is_user(each.user)]


async def show_claimed(ctx: Context, claimed: Claimed) -> list[ShownSubscription]:
    """The answer to the member who claimed them."""
    return show_subscriptions(ctx, claimed.subscriptions)
