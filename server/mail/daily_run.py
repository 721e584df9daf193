"""The daily run: every list gets its word, every subscriber one letter.

    lists ── words drawn ─┐
                          ├── 16 shards of readers, by the hundred ── those not yet sent ── claim ── send ── mark
    index of subscribers ─┘

Nothing is kept but one batch of readers and the words of the lists they take, so memory does not grow with the number
of members. A run that is killed is simply started again: what was marked is passed over, and what it had claimed and
not marked is waited for until the claim lapses, then sent.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

import structlog

from datastore import people, vocabulary
from datastore.dynamo import DynamoError
from datastore.refusals import Refusal
from datastore.vocabulary import ListBroken, Mail, Reader, WordList
from datastore.vocabulary.mail import CLAIM, KEPT_FOR, LATEST
from resolvers.context import Services
from server.mail.message import Portion, Stationery
from server.mail.smtp import AT_ONCE, Doubtful, Outbox, Refused, Unreachable

_BATCH = 100
_LISTS_KEPT = 10_000
_DRAWS_AT_ONCE = 16
_MOST_WAITED_FOR = 10_000
_REASONS_SHOWN = 20
_FIRST_POLL, _LONGEST_POLL = 0.2, 5.0
_log = structlog.get_logger("ringside.daily")


@dataclass(slots=True)
class Summary:
    """What a run did."""

    on: date
    lists: int = 0
    readers: int = 0
    sent: int = 0
    already: int = 0
    without_address: int = 0
    without_words: int = 0
    failed: int = 0
    claimed_elsewhere: int = 0
    reasons: list[str] = field(default_factory=list)
    lists_failed: dict[str, str] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        return not (self.failed or self.claimed_elsewhere or self.lists_failed)

    def fail(self, reason: str) -> None:
        self.failed += 1
        if len(self.reasons) < _REASONS_SHOWN:
            self.reasons.append(reason)

    def lines(self) -> list[str]:
        """For people."""
        counts = {
            "lists with a word": self.lists,
            "subscribers": self.readers,
            "letters sent": self.sent,
            "had theirs before": self.already,
            "without an e-mail address": self.without_address,
            "whose lists have no words": self.without_words,
            "failed": self.failed,
            "held by another run": self.claimed_elsewhere,
        }
        told = [f"{count:>9,} {what}" for what, count in counts.items()]
        told += [f"list {name}: {reason}" for name, reason in self.lists_failed.items()]
        return [*told, *self.reasons]


class LongPast(Exception):
    """The marks of who had a letter of this date may be gone: sending again could double some."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How many letters are on their way at a time, and how long another run's claim is respected."""

    at_once: int = AT_ONCE
    held_for: timedelta = CLAIM


class Run:
    """One run for one date. Several may be under way; each subscriber is one run's alone."""

    def __init__(
        self,
        services: Services,
        stationery: Stationery,
        outbox: Outbox,
        pace: Pace = Pace(),
        progress: Callable[[Summary], None] = lambda _: None,
    ) -> None:
        self._house = services
        self._stationery = stationery
        self._outbox = outbox
        self._at_once = pace.at_once
        self._held_for = pace.held_for
        self._progress = progress
        self._id = services.ids.next(services.clock())
        self._words: OrderedDict[str, asyncio.Future[tuple[WordList, vocabulary.DailyWord] | None]] = OrderedDict()
        self._waited_for: list[Reader] = []
        self._lapses = services.clock()
        self.summary = Summary(stationery.on)

    async def carry_out(self) -> Summary:
        """All of it. Unreachable ends it early, with everything claimed given back; LongPast before it begins."""
        mailing = await vocabulary.begin(self._house.table, self.summary.on, self._house.clock())
        if mailing.begun < self._house.clock() - LATEST:
            message = (
                f"The letters of {mailing.date} went out on {mailing.begun:%Y-%m-%d}, too long ago to know to whom"
            )
            raise LongPast(message)
        await self._draw_public_words()
        batch: list[Reader] = []
        async for reader in vocabulary.all_readers(self._house.table):
            self.summary.readers += 1
            batch.append(reader)
            if len(batch) == _BATCH:
                await self._serve(batch)
                batch = []
        await self._serve(batch)
        await self._serve_the_waiting()
        return self.summary

    # ── words ──

    async def _draw_public_words(self) -> None:
        room = asyncio.Semaphore(_DRAWS_AT_ONCE)

        async def draw(found: WordList) -> None:
            async with room:
                if await self._word_of(found.list) is not None:
                    self.summary.lists += 1

        lists: list[WordList] = []
        async for found in vocabulary.lists_by_name(self._house.table, None):
            lists.append(found)
            if len(lists) == _BATCH:
                await asyncio.gather(*map(draw, lists))
                self._progress(self.summary)
                lists = []
        await asyncio.gather(*map(draw, lists))

    async def _word_of(self, list_id: str) -> tuple[WordList, vocabulary.DailyWord] | None:
        """A list and its word, drawn once a run; None for a list without words, or one that fails."""
        known = self._words.get(list_id)
        if known is None:
            known = self._words[list_id] = asyncio.ensure_future(self._drawn(list_id))
            if len(self._words) > _LISTS_KEPT:
                self._words.popitem(last=False)
        return await asyncio.shield(known)

    async def _drawn(self, list_id: str) -> tuple[WordList, vocabulary.DailyWord] | None:
        try:
            drawn = await vocabulary.draw(self._house.table, list_id, self.summary.on)
            found = await vocabulary.word_list(self._house.table, list_id)
        except (ListBroken, DynamoError, Refusal) as error:
            self.summary.lists_failed[list_id] = str(error)
            _log.error("a list has no daily word", list=list_id, reason=str(error))
            return None
        return (found, drawn) if found is not None and drawn is not None else None

    # ── letters ──

    async def _serve(self, readers: Sequence[Reader]) -> None:
        """A batch of readers, at most `at_once` of them at a time."""
        if not readers:
            return
        users = [reader.user for reader in readers]
        marks = await vocabulary.marks(self._house.table, users, self.summary.on)
        waiting = list(reversed(readers))

        async def work() -> None:
            while waiting:
                reader = waiting.pop()
                mark = marks.get(reader.user)
                if mark is not None and mark.sent is not None:
                    self.summary.already += 1
                else:
                    await self._serve_one(reader)

        workers = [asyncio.create_task(work()) for _ in range(min(self._at_once, len(readers)))]
        try:
            await asyncio.gather(*workers)
        except Unreachable:
            # The others end by themselves: each gives back what it holds.
            waiting.clear()
            await asyncio.gather(*workers, return_exceptions=True)
            raise
        self._progress(self.summary)

    async def _serve_one(self, reader: Reader) -> None:
        """One reader's letter. Whatever goes wrong with it is counted and stops nobody else's."""
        try:
            await self._letter(reader)
        except Unreachable:
            raise
        except (DynamoError, Refusal) as error:
            self.summary.fail(f"{reader.user}: {error}")
        except Exception as error:  # noqa: BLE001 - a fault in one letter is no reason to withhold the others
            _log.exception("a letter failed", user=reader.user)
            self.summary.fail(f"{reader.user}: {type(error).__name__}")

    async def _letter(self, reader: Reader) -> None:
        profile = reader.profile or await people.profile(self._house.table, reader.user)
        if profile is None or not profile.email:
            self.summary.without_address += 1
            return
        portions = await self._portions(reader)
        if not portions:
            self.summary.without_words += 1
            return
        letter = self._stationery.letter(reader.user, profile.email, portions)
        now = self._house.clock()
        mine = Mail(reader.user, self.summary.on, self._id, claimed=now, expires=now + KEPT_FOR)
        standing = await vocabulary.claim(self._house.table, mine, self._held_for)
        if standing is not None:
            self._stands_in_the_way(reader, standing)
            return
        try:
            await self._outbox.send(letter, profile.email)
        except Doubtful as error:
            # The claim stays: nobody sends it again before it lapses.
            self.summary.fail(f"{reader.user}: it is not known whether the letter was sent: {error}")
            return
        except Refused as error:
            await vocabulary.give_back(self._house.table, mine)
            self.summary.fail(f"{reader.user}: {error}")
            return
        except Unreachable:
            with contextlib.suppress(DynamoError):
                await vocabulary.give_back(self._house.table, mine)
            raise
        await vocabulary.mark_sent(self._house.table, mine, self._house.clock())
        self.summary.sent += 1

    async def _portions(self, reader: Reader) -> list[Portion]:
        """The reader's words; a private list's only to its owner, whatever a subscription says."""
        portions = []
        for subscription in reader.subscriptions:
            found = await self._word_of(subscription.list)
            if found is not None and found[0].visible_to(reader.user):
                listed, drawn = found
                portions.append(Portion(listed.list, listed.name, subscription.character_set, drawn.word))
        return sorted(portions, key=lambda portion: (portion.list_name, portion.list, portion.character_set.value))

    # ── what another run holds ──

    def _stands_in_the_way(self, reader: Reader, standing: Mail) -> None:
        if standing.sent is not None:
            self.summary.already += 1
        elif len(self._waited_for) < _MOST_WAITED_FOR:
            # Without the profile, which may have changed when the claim lapses.
            self._waited_for.append(replace(reader, profile=None))
            self._lapses = max(self._lapses, standing.claimed + self._held_for)
        else:
            self.summary.claimed_elsewhere += 1

    async def _serve_the_waiting(self) -> None:
        """Readers whom another run had claimed: it sends, or its claim lapses."""
        pause = _FIRST_POLL
        while self._waited_for:
            left = (self._lapses - self._house.clock()).total_seconds()
            self._progress(self.summary)
            await asyncio.sleep(min(pause, max(_FIRST_POLL, left)))
            pause = min(2 * pause, _LONGEST_POLL)
            readers, self._waited_for = self._waited_for, []
            for start in range(0, len(readers), _BATCH):
                await self._serve(readers[start : start + _BATCH])
