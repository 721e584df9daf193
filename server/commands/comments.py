"""`ringside comments rules test`: what hold rules would have held of the comments that exist."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from datastore.comments import transfer
from datastore.comments.hold_rules import HoldRule, HoldRules
from datastore.comments.records import Comment
from datastore.refusals import InvalidInput
from resolvers.comments.holding import HoldRuleInput, parse_rules
from resolvers.comments.judging import Judge
from resolvers.members.suspensions import Suspensions
from resolvers.requests.context import Services
from resolvers.values.texts import CONTROL_CHARACTERS
from resolvers.whole.trials import rule_for_posted
from server import Failed
from server.commands import out
from server.commands.files import progress_bar, read_text
from server.commands.running import run_with_services

app = typer.Typer()
comments = typer.Typer(help="Comments: which ones wait for a moderator.", no_args_is_help=True)
rules = typer.Typer(help="Rules that hold comments.", no_args_is_help=True)
app.add_typer(comments, name="comments")
comments.add_typer(rules, name="rules")

_MOST_SHOWN = 3
_LETTERS = 80


class _Rule(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A rule as `holdRules` answers it."""

    name: str
    language: str | None = None
    words: list[str] | None = None
    links: int | None = None
    first_comments: int | None = None
    per_hour: int | None = None
    guests: bool = False


class _File(msgspec.Struct, forbid_unknown_fields=True):
    rules: list[_Rule]
    revision: int = 0


@dataclass(slots=True)
class Trial:
    """What rules would have held: how many comments each, and the beginning of some."""

    comments: int = 0
    held: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, comment: Comment, rule: str | None) -> None:
        self.comments += 1
        if rule is None:
            return
        self.held[rule] += 1
        shown = self.examples.setdefault(rule, [])
        if len(shown) < _MOST_SHOWN:
            text = CONTROL_CHARACTERS.sub(" ", " ".join(comment.body.split()))
            shown.append(f"{comment.product} {comment.created_at:%Y-%m-%d}: {text[:_LETTERS]}")


@rules.command("test")
def try_rules(
    file: Annotated[Path, typer.Argument(help="The rules as JSON, as `holdRules` answers; - reads standard input.")],
) -> None:
    """Shows which comments a file's rules would have held when they were posted. It changes nothing."""
    parsed = read_rules(file)
    trial = run_with_services(lambda services: _try(services, parsed))
    for rule in parsed:
        out.print(f"{rule.name}: {trial.held[rule.name]:,} of {trial.comments:,} comments.")
        for example in trial.examples.get(rule.name, ()):
            out.print(f"  {example}")


def read_rules(file: Path) -> tuple[HoldRule, ...]:
    try:
        given = msgspec.json.decode(read_text(file), type=_File)
        inputs = [HoldRuleInput(**msgspec.structs.asdict(rule)) for rule in given.rules]
        return parse_rules(inputs, ("rules",))
    except msgspec.MsgspecError as error:
        raise Failed(f"{file} has no rules as `holdRules` answers them: {error}.") from None
    except InvalidInput as refusal:
        raise Failed(f"{file}, {'.'.join(refusal.path)}: {refusal.message}") from None


async def _try(services: Services, parsed: tuple[HoldRule, ...]) -> Trial:
    judge, trial = Judge(HoldRules(parsed)), Trial()
    await services.get(Suspensions).refresh()  # for the roles
    with progress_bar("comments") as advance:
        async for comment in transfer.export_comments(services.table):
            trial.add(comment, await rule_for_posted(services, judge, comment))
            advance(trial.comments)
    return trial
