"""Files generated from the code: `make generated` writes them, and a test compares them."""

import importlib
import json
import pkgutil
import re
import textwrap
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from graphql import build_schema

import datastore
from bench.cost import UNITS, costs_table, idle_table
from datastore.changes.occurrences import Kind
from datastore.dynamo.entity import INDEXES, Entity, Key
from schema import schema
from schema.framework import declarations
from server.__main__ import COMMANDS, load_command
from server.settings import settings_table
from tests.schema_reference import reference

ROOT: Final = Path(__file__).resolve().parents[1]


def sdl() -> str:
    return schema.as_str() + "\n"


def guide_keys() -> str:
    return _filled("docs/keys.md", keys=keys_table())


def guide_reference() -> str:
    return reference(build_schema(sdl()), ROOT / "examples")


def guide_commands() -> str:
    return _filled("docs/commands.md", commands=commands_table())


def guide_settings() -> str:
    return _filled("docs/settings.md", settings=settings_table())


def guide_errors() -> str:
    return _filled("docs/errors.md", codes=codes_table())


def guide_journal() -> str:
    kinds = textwrap.fill(", ".join(f"`{kind.value}`" for kind in Kind), 120, break_on_hyphens=False)
    return _filled("docs/journal.md", kinds=kinds)


def guide_cost() -> str:
    """The guide's page on cost, with what bench/cost.py measured."""
    units = json.loads(UNITS.read_text(encoding="utf-8"))
    return _filled("docs/cost.md", costs=costs_table(units["operations"]), idle=idle_table(units["idle"]))


def _between_markers(table: str, markers: re.Match[str]) -> str:
    return f"{markers[1]}{table}\n{markers[2]}"


def _filled(name: str, **tables: str) -> str:
    text = (ROOT / name).read_text(encoding="utf-8")
    for marker, table in tables.items():
        between = re.compile(rf"(<!-- {marker}: .*? -->\n).*?(<!-- /{marker} -->)", re.DOTALL)
        text, replaced = between.subn(partial(_between_markers, table), text)
        assert replaced == 1, f"{name} has lost the markers around its {marker}"
    return text


ADVICE: Final = {
    "INVALID_INPUT": "Show `message` next to the input that `path` names. Do not repeat it unchanged. Addresses of "
    "pictures are refused unless `RINGSIDE_IMAGE_HOSTS` lists their hosts.",
    "NOT_FOUND": "Drop the id from your cache, and show that it is gone.",
    "NOT_SIGNED_IN": "Let the member sign in, then send the same again with the token: `Authorization: Bearer …`. A "
    "visitor whose walk a member goes on with gets this too. If the sign-in is too long ago, "
    "`/sign-in?again=1&returnTo=…` asks anew and leads back.",
    "NOT_ALLOWED": "Hide the button. A suspended member gets this too, with the `path` `viewer`, `suspension` and "
    "with `retryAfterSeconds` if it ends; a page that starts a visit, if `RINGSIDE_CORS_ORIGINS` does not list its "
    "origin; and who signs in by a method that is off: `RINGSIDE_SMTP_URL` turns emails on, `RINGSIDE_GUESTS` guests.",
    "CONFLICT": "Read the object again and show it. With `retryAfterSeconds`, send the same again after that time.",
    "LOCKED": "Show it as closed. With `retryAfterSeconds`, it opens after that time.",
    "TOKEN_UNKNOWN": "It was altered, or is another viewer's. Draw again, or start a new quiz. A code: look at the "
    "newest email.",
    "TOKEN_EXPIRED": "Draw again: mostly the same pair comes with a new token. Or start a new quiz, or ask for another "
    "code.",
    "TOKEN_SPENT": "The first use counts. Draw the next pair, start a new quiz, or ask for another code.",
    "EXHAUSTED": "Say that there is nothing to vote on yet.",
    "IDEMPOTENCY_MISMATCH": "A fault of the client: choose a new key for each new input.",
    "CHALLENGE_NEEDED": "Ask for a `challenge`, solve it, and send the same again with its `solution`.",
    "RATE_LIMITED": "Wait for `retryAfterSeconds`, then send the same again.",
    "UNAVAILABLE": "Send the same again after `retryAfterSeconds` or `Retry-After`, a mutation with the same "
    "`idempotencyKey`.",
    "BAD_REQUEST": "A fault of the client: `message` says what to send instead.",
    "UNAUTHENTICATED": "Get a new token, or a new visit, and send the same again.",
    "OVERLOADED": "Wait that long, then send the same again.",
    "GRAPHQL_PARSE_FAILED": "A fault of the client: correct the document.",
    "GRAPHQL_VALIDATION_FAILED": "A fault of the client: generate its types from the schema again.",
    "PERSISTED_QUERY_NOT_FOUND": "Deploy the manifest before the pages that use it.",
    "PERSISTED_QUERY_NOT_SUPPORTED": "Send the text, as persisted queries do by themselves.",
    "BAD_USER_INPUT": "As INVALID_INPUT. If the document is too large, ask for less, or send several requests.",
    "INVALID_CURSOR": "Read the list from its start.",
    "INTERNAL": "Show that it failed. Report the request's id, the header `x-request-id`.",
}
"""What a client does about each code, for the guide."""


def codes_table() -> str:
    """The codes as the guide lists them, in Markdown."""
    rows = [
        (code, "`Refused`, errors" if code != "INVALID_INPUT" else "`Refused`", meaning)
        for code, meaning in declarations.refusal_codes().items()
    ]
    rows += [(code, "errors", meaning) for code, meaning in declarations.ERROR_CODES.items()]
    lines = (f"| `{code}` | {where} | {meaning} | {ADVICE[code]} |" for code, where, meaning in rows)
    return "\n".join(["| code | in | meaning | what to do |", "|---|---|---|---|", *lines])


def commands_table() -> str:
    """The commands, with the first sentence of their help texts."""
    rows = (f"| `ringside {name}` | {_table_cell(command.help or '')} |" for name, command in sorted(_commands()))
    return "\n".join(["| command | |", "|---|---|", *rows])


def _table_cell(text: str) -> str:
    return re.split(r"(?<=\.) ", " ".join(text.split()))[0].replace("<", "&lt;")


def _commands() -> Iterator[tuple[str, Any]]:
    for name, command in zip(COMMANDS, map(load_command, COMMANDS), strict=True):
        yield from _commands_of(name, command)


def _commands_of(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command, or those of a group and of the groups in it."""
    inner = getattr(command, "commands", {})
    for each, below in inner.items():
        yield from _commands_of(f"{name} {each}", below)
    if not inner or command.invoke_without_command:
        yield name, command


def entities() -> list[Entity[Any]]:
    """All entities that a module of the datastore declares, ordered by their keys."""
    names = [module.name for module in pkgutil.walk_packages(datastore.__path__, "datastore.")]
    modules = [importlib.import_module(name) for name in names]
    declared = {id(value): value for module in modules for value in vars(module).values() if isinstance(value, Entity)}
    return sorted(declared.values(), key=lambda entity: (entity.key.partition.text, entity.key.sort.text))


def keys_table() -> str:
    """The key of each kind of record, and its keys in the indexes. One with several places has a line for each."""
    places: dict[type, list[Entity[Any]]] = {}
    for entity in entities():
        places.setdefault(entity.record, []).append(entity)
    rows = (
        f"| {record.__name__} | "
        + " | ".join(
            "<br>".join(keys) if any(keys) else ""
            for keys in (
                [_places(entity.key) for entity in each],
                *([_places(entity.indexes.get(index)) for entity in each] for index in INDEXES),
            )
        )
        + " |"
        for record, each in places.items()
    )
    return "\n".join([f"| record | `pk`, `sk` | {' | '.join(INDEXES)} |", "|---" * (2 + len(INDEXES)) + "|", *rows])


def _places(key: Key | None) -> str:
    if key is None:
        return ""
    when = f" when {key.when}" if key.when else f" unless {key.unless}" if key.unless else ""
    return f"`{key.partition.text}`, `{key.sort.text}`{when}"


FILES: Final[dict[str, Callable[[], str]]] = {
    "schema/schema.graphql": sdl,
    "docs/keys.md": guide_keys,
    "docs/reference.md": guide_reference,
    "docs/cost.md": guide_cost,
    "docs/commands.md": guide_commands,
    "docs/settings.md": guide_settings,
    "docs/errors.md": guide_errors,
    "docs/journal.md": guide_journal,
}

if __name__ == "__main__":
    for name, text in FILES.items():
        (ROOT / name).write_text(text(), encoding="utf-8")
