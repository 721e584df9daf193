"""Hold rules: setting them, and holding the comments for which they ask.

Moderators and editors are never held. The author of a held comment learns that it waits, not which rule holds it.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

from datastore.comments import hold_rules as rule_store
from datastore.comments.hold_rules import Asked, History, HoldRule, HoldRules
from datastore.comments.records import Comment
from datastore.dynamo import Table
from datastore.refusals import InvalidInput
from resolvers.comments.judging import Judge, asked_by, holds, word_form
from resolvers.requests.context import Context, Role, Services
from resolvers.values.languages import parse_language
from resolvers.values.texts import parse_line

MOST_RULES = 50
MOST_WORDS = 500
LONGEST_WORD = 100
LONGEST_NAME = 60
MOST_LINKS = 100
MOST_FIRST_COMMENTS = 100
MOST_PER_HOUR = 1_000


# ── judging ──


class Holding:
    """The rules as this process has last read them. They are read before they are needed: no comment waits for them."""

    def __init__(self, services: Services) -> None:
        self._table = services.table
        self._judge: Judge | None = None

    async def refresh(self) -> Judge:
        return self.know(await rule_store.read_hold_rules(self._table))

    async def judge(self) -> Judge:
        return self._judge or await self.refresh()

    def know(self, rules: HoldRules) -> Judge:
        """Judge by these rules, unless newer ones are known: a read may end after this process has set some."""
        if self._judge is None or self._judge.revision < rules.revision:
            self._judge = Judge(rules)
        return self._judge


async def turn_of_author(ctx: Context) -> AbstractAsyncContextManager[None]:
    """Held while a new comment is judged and stored, if a rule counts those of the hour: it counts what is stored."""
    judge = await ctx.services.get(Holding).judge()
    return ctx.services.turn("comments", ctx.viewer.id) if judge.asks_for_the_hour else nullcontext()


async def hold_for(ctx: Context, comment: Comment) -> str | None:
    """The name of the rule that holds a comment as its author posts or edits it."""
    if ctx.viewer.may(Role.MODERATOR) or ctx.viewer.may(Role.EDITOR):
        return None
    judge = await ctx.services.get(Holding).judge()
    return await holding_rule(ctx.table, judge, comment, before=ctx.new_id(), is_guest=ctx.viewer.is_guest)


async def holding_rule(table: Table, judge: Judge, comment: Comment, *, before: str, is_guest: bool) -> str | None:
    """The first rule whose conditions a comment meets, by what its author had posted before an id was made."""
    suspects = judge.suspects(comment, is_guest=is_guest)
    asked = asked_by(suspects)
    history = History() if asked == Asked() else await rule_store.read_history(table, comment, before, asked)
    return next((rule.name for rule in suspects if holds(rule, history)), None)


# ── the rules ──


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldRuleInput:
    """A rule as an admin writes it."""

    name: str
    language: str | None = None
    words: list[str] | None = None
    links: int | None = None
    first_comments: int | None = None
    per_hour: int | None = None
    guests: bool = False


async def hold_rules(ctx: Context, /) -> HoldRules:
    ctx.with_role(Role.MODERATOR)
    return await rule_store.read_hold_rules(ctx.table)


async def set_hold_rules(ctx: Context, /, *, rules: list[HoldRuleInput], revision: int) -> int:
    """Replace all rules; Conflict if somebody has set them since they were read."""
    ctx.with_role(Role.ADMIN)
    parsed = parse_rules(rules, ("input", "rules"))
    new = await rule_store.write_hold_rules(ctx.table, ctx.unit, parsed, revision)
    ctx.services.get(Holding).know(HoldRules(parsed, new))
    return new


async def show_rules(ctx: Context, _: int) -> HoldRules:
    """The answer to those who have set the rules, and may read them still: a receipt answers for days."""
    return await hold_rules(ctx)


# ── validation ──


def parse_rules(rules: Sequence[HoldRuleInput], path: tuple[str, ...]) -> tuple[HoldRule, ...]:
    if len(rules) > MOST_RULES:
        raise InvalidInput(f"There are at most {MOST_RULES} rules.", path=path)
    parsed = tuple(_parse_rule(rule, (*path, str(place))) for place, rule in enumerate(rules))
    names = [rule.name for rule in parsed]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InvalidInput("Another rule has this name.", path=(*path, str(place), "name"))
    return parsed


def _parse_rule(given: HoldRuleInput, path: tuple[str, ...]) -> HoldRule:
    rule = HoldRule(
        parse_line(given.name, LONGEST_NAME, "A rule's name", (*path, "name")),
        None if given.language is None else parse_language(given.language, (*path, "language")),
        _parse_words(given.words or (), (*path, "words")),
        _bounded(given.links, MOST_LINKS, (*path, "links")),
        _bounded(given.first_comments, MOST_FIRST_COMMENTS, (*path, "firstComments"), least=1),
        _bounded(given.per_hour, MOST_PER_HOUR, (*path, "perHour")),
        given.guests,
    )
    if not rule.has_condition:
        raise InvalidInput("A rule has at least one condition.", path=path)
    return rule


def _parse_words(words: Sequence[str], path: tuple[str, ...]) -> tuple[str, ...]:
    if len(words) > MOST_WORDS:
        raise InvalidInput(f"A rule has at most {MOST_WORDS} words.", path=path)
    for place, word in enumerate(words):
        if len(word) > LONGEST_WORD or word_form(word) is None:
            raise InvalidInput(
                f"A word is one run of letters and digits, {LONGEST_WORD} at most, without spaces and signs.",
                path=(*path, str(place)),
            )
    return tuple(dict.fromkeys(word.strip() for word in words))


def _bounded(number: int | None, most: int, path: tuple[str, ...], *, least: int = 0) -> int | None:
    if number is not None and not least <= number <= most:
        raise InvalidInput(f"This is a number from {least} to {most:,}.", path=path)
    return number
