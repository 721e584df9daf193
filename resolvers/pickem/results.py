"""How an event ended: the results of its matches, and the answer to its tie-break."""

from __future__ import annotations

from dataclasses import replace

from datastore import pickem as pickem_store
from datastore.changes.kinds import Kind
from datastore.pickem import Event, EventState, MatchOutcome
from datastore.refusals import Conflict
from resolvers.pickem import rules
from resolvers.pickem.cache import pickem_cache
from resolvers.pickem.events import EventId, MatchId, change_event, validate_match
from resolvers.pickem.tie_breaks import parse_number
from resolvers.pickem.visibility import MatchView, show_match
from resolvers.requests.context import Context
from resolvers.requests.viewer import Role


async def record_result(
    ctx: Context, /, *, match: MatchId, outcome: MatchOutcome, winner: int | None = None
) -> MatchView:
    """Record how a match ended. A later result corrects an earlier one; points follow when the event is scored."""
    ctx.with_role(Role.EDITOR)
    event_id, _, match_id = match.partition(":")

    async def change(before: Event) -> MatchView:
        ended = validate_match(before, await pickem_cache(ctx).card(before), match_id)
        _validate_locked(before, "Results are", "match")
        result = rules.parse_result(ended, outcome, winner)
        if before.results.get(match_id) == result:
            answer = show_match(before, ended)
            await ctx.unit.store_receipt(ctx.table, answer)
            return answer
        results = {**before.results, match_id: result}
        after = before.changed(results=results, generation=before.generation + 1)
        answer = show_match(after, ended)
        kind = Kind.RESULT_RECORDED
        await pickem_store.change_event(ctx.table, before, after, ctx.unit, answer, kind=kind, about=ended)
        return answer

    return await change_event(ctx, event_id, change, "match")


async def record_tie_break(ctx: Context, /, *, event: EventId, answer: float) -> Event:
    """Record the answer. A later one corrects it; the order follows when the event is scored."""
    ctx.with_role(Role.EDITOR)
    thousandths = parse_number(answer, "answer")

    async def change(before: Event) -> Event:
        if before.tie_break is None:
            raise Conflict("This event asks for no number.", path=("input", "event"))
        _validate_locked(before, "The answer is", "event")
        if before.tie_break.thousandths == thousandths:
            await ctx.unit.store_receipt(ctx.table, before)
            return before
        answered = replace(before.tie_break, thousandths=thousandths)
        after = before.changed(tie_break=answered, generation=before.generation + 1)
        kind = Kind.TIE_BREAK_RECORDED
        return await pickem_store.change_event(ctx.table, before, after, ctx.unit, after, kind=kind)

    return await change_event(ctx, event, change)


def _validate_locked(event: Event, what: str, field: str) -> None:
    if event.state not in (EventState.LOCKED, EventState.SCORED):
        raise Conflict(f"This event is {event.state.value}. {what} recorded once it is locked.", path=("input", field))
