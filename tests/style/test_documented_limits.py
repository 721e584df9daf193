"""The figures on the guide's page about limits are those of the code."""

import inspect
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest
from graphql import GraphQLObjectType

from datastore.changes import occurrences, unit_of_work
from datastore.comments import helpful
from datastore.dynamo import LARGEST_PAGE, parse_rate
from datastore.people import identities
from datastore.pickem import leagues
from datastore.values import folding
from datastore.vocabulary import lists, words
from datastore.voting import continuing as continuing_store
from datastore.voting import editing, pair_walk, suspects
from resolvers.comments import claiming, holding, writing
from resolvers.comments import rules as comment_rules
from resolvers.journal import usage
from resolvers.live import topics
from resolvers.members import sessions, sign_in_codes
from resolvers.people import confirmations
from resolvers.pickem import leagues as league_resolvers
from resolvers.pickem import rules as card_rules
from resolvers.requests import address_limits
from resolvers.requests.context import CHANGE_RATE, RECENT
from resolvers.vocabulary import quizzes, subscriptions, texts
from resolvers.voting import ballots, boards, continuing, svg
from resolvers.whole import exporting, importing, trials
from resolvers.whole import signing_in as whole_signing_in
from schema import schema
from schema.framework.declarations import COMPLEXITY, READ, declared_of
from server.auth import tokens
from server.execution.answers import LARGEST_ANSWER
from server.execution.limits import MAX_DIGITS, MAX_JSON_PARTS, MAX_LINE_ENDS, MAX_NAME, Limits
from server.http import messages, pipeline, protocol, sign_in
from server.settings import Settings
from tests.generated import ROOT

LIMITS = Limits()
CODES = dict(address_limits.CODES)
PAGE = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
DEFAULT: Mapping[str, Any] = {name: field.default for name, field in Settings.model_fields.items()}
FIGURES: Mapping[str, Sequence[Any]] = {
    "request body; message of a WebSocket": [DEFAULT["max_body_bytes"]],
    "request headers": [DEFAULT["max_header_bytes"]],
    "time to send headers; a body": [DEFAULT["header_timeout"], DEFAULT["body_timeout"]],
    "connections per process": [DEFAULT["max_connections"]],
    "time per request": [DEFAULT["request_timeout"]],
    "concurrent requests per process, links of emails among them; per address": [
        DEFAULT["max_in_flight"],
        pipeline.LEAST_OF_ADDRESS,
    ],
    "bodies of which the end has not come, in whole pieces of 64 KiB, per process; per address": [
        pipeline.BODY_PIECES * messages.PIECE,
        pipeline.BODY_PIECES_OF_ADDRESS * messages.PIECE,
    ],
    "requests that wait on a connection for the answer to the one before them": [protocol.MAX_PIPELINED],
    "new documents of an address that wait to be checked; of all": [pipeline.LEAST_OF_ADDRESS],
    "memory for documents and their compiled operations": [DEFAULT["document_cache_bytes"]],
    "WebSockets, event streams and exported files under way per process; per address": [
        DEFAULT["max_streams"],
        DEFAULT["streams_per_address"],
    ],
    "open subscriptions per process; per address": [
        DEFAULT["max_subscriptions"],
        DEFAULT["subscriptions_per_address"],
    ],
    "what subscriptions watch, per process; per address": [*3 * [topics.MOST_TOPICS], topics.TOPICS_PER_ADDRESS],
    "answers of which clients have not read the end, per process": [protocol.MOST_UNREAD],
    "operations on a WebSocket": [DEFAULT["operations_per_socket"]],
    "draws, and votes, per visitor and process": [DEFAULT["votes_per_visitor"]],
    "votes per address, all processes together": [DEFAULT["votes_per_address"]],
    "new visitors per address, all processes together": [DEFAULT["new_visitors_per_address"]],
    "new guests per address, all processes together": [DEFAULT["new_guests_per_address"]],
    "emails with a link or a code that an address asks for, all processes together": [DEFAULT["emails_per_address"]],
    "codes to sign in that an email address gets, all processes together": [
        CODES["CODES-HOUR"],
        CODES["CODES-DAY"],
        CODES["CODES-ASKER"],
    ],
    "comments per member: posting, editing, reporting and marking each": [],
    "a contender's SVG as it is sent; as it is stored, its rules applied to each element": [
        svg.LARGEST,
        svg.LARGEST_RESULT,
    ],
    "headers of a request": [protocol.MAX_HEADERS],
    "bytes of a GET's query": [messages.MAX_QUERY_STRING],
    "bytes of a subscription's request, its variables included": [pipeline.LARGEST_SUBSCRIPTION],
    "tokens in a document": [LIMITS.tokens],
    "line ends in a document": [MAX_LINE_ENDS],
    "nesting of brackets": [LIMITS.nesting],
    f"queries and mutations of complexity {pipeline.DEAR:,} or more that a process answers at the same moment": [
        pipeline.DEAR_AT_ONCE
    ],
    "depth of fields": [LIMITS.depth, LIMITS.introspection_depth],
    "fields, aliases, directives, operations, fragments": [
        LIMITS.fields,
        LIMITS.aliases,
        LIMITS.directives,
        LIMITS.operations,
        LIMITS.fragments,
    ],
    "fields of the same name": [LIMITS.same_name],
    "complexity: each field counted once per object it is read from": [LIMITS.complexity],
    "objects on a page": [LARGEST_PAGE],
    "comments of a product that `order: HELPFUL` ranks": [helpful.MOST_RANKED],
    "objects that an operation names in lists: `nodes(ids:)`, `commentStatisticsOf(products:)`": [LIMITS.named],
    "strings, brackets and commas in a request's JSON": [MAX_JSON_PARTS],
    "values in the variables": [LIMITS.values],
    "fields of the schema's own types in an introspection's answer": [LIMITS.introspection],
    f"letters of all texts in the answer of an operation of complexity {pipeline.DEAR:,} or more": [LARGEST_ANSWER],
    "frames of one message on a WebSocket, which all come within `RINGSIDE_BODY_TIMEOUT`": [protocol.MOST_FRAMES],
    "characters in a name of a document": [MAX_NAME],
    "digits in a number of a document": [MAX_DIGITS],
    "visitors with whose votes on a board one member goes on": [continuing_store.MOST_CONTINUED],
    "operations that a process reports in an hour under their own names": [usage.MOST_NAMES],
    "league codes tried, per member; per address": [
        league_resolvers.PER_MEMBER,
        league_resolvers.PER_ADDRESS,
    ],
    "league codes that a member tries, those refused by that limit included, per process": [league_resolvers.TRIES],
    "sign-ins at the provider per address and process": [sign_in.PER_ADDRESS],
    "sessions for pages of other sites that a member gets on `/sign-in`, per process": [sign_in.PER_MEMBER],
    "codes and links that an address tries to sign in by, or to add by, per process": [sign_in_codes.TRIES],
    "quizzes that one member starts, per process": [quizzes.START_RATE],
    "comments per guest and process, whatever that setting says: posting and editing each": [writing.RATE_OF_GUESTS],
    "reviews, quiz results, sentences, changes of lists, words, subscriptions, leagues and the profile, and deletions "
    "of comments by one member, each per process": [CHANGE_RATE],
    "confirmations of an address that one member asks for, per process": [confirmations.RATE],
    "claims of comments that one member begins; visits that they continue, per process": [
        claiming._RATE,
        continuing._RATE,
    ],
    "API keys, and sessions, of an address that do not exist, per process": [sessions.LOOKUPS_PER_ADDRESS],
    "ways to sign in of a member": [identities.MOST_IDENTITIES],
    "files about members that one member asks for, per process": [exporting.RATE],
    "bytes of a text that an editor imports; with the escapes of its JSON it counts towards the request's body, too": [
        importing.LONGEST_TEXT
    ],
    "what one editor pastes to import it or to have it checked, per process": [importing.RATE],
    "rules that one moderator tries; pictures that one editor previews, per process": [
        trials.PREVIEW_RATE,
        boards.PREVIEW_RATE,
    ],
    "accents and other combining marks in a row, in every text that is compared": [folding.MOST_MARKS],
    "characters of a product's id, which has no `#`": [comment_rules.LONGEST_PRODUCT],
    "letters of a comment; of its title; of a report's reason": [
        comment_rules.LONGEST_BODY,
        comment_rules.LONGEST_TITLE,
        comment_rules.LONGEST_REASON,
    ],
    "rules that hold comments; words of a rule; letters of a word": [
        holding.MOST_RULES,
        holding.MOST_WORDS,
        holding.LONGEST_WORD,
    ],
    "letters of an event's name; season; description; place; question for a tie": [
        card_rules.LONGEST_NAME,
        card_rules.LONGEST_SEASON,
        card_rules.LONGEST_DESCRIPTION,
        card_rules.LONGEST_PLACE,
        card_rules.LONGEST_QUESTION,
    ],
    "letters of a word; its reading; its definition; its example; its list's name": [
        texts.LONGEST_TERM,
        texts.LONGEST_READING,
        texts.LONGEST_DEFINITION,
        texts.LONGEST_EXAMPLE,
        texts.LONGEST_NAME,
    ],
    "contenders of a board, retired ones included": [editing.MAX_CONTENDERS],
    "letters of a contender's name; of its description": [boards.LONGEST_NAME, boards.LONGEST_DESCRIPTION],
    "for the pairs that a voter has passed while contenders were retired: restorations since their last draw; votes in "
    "their cycle; bytes": [editing._MAX_LATEST_RESTORED, ballots._MOST_VOTES, pair_walk.MAX_MISSED_BYTES],
    "matches of an event; teams of a match; members of a team": [
        card_rules.MOST_MATCHES,
        card_rules.MOST_TEAMS,
        card_rules.MOST_MEMBERS,
    ],
    "members of a league; captains; leagues of a member": [
        leagues.MOST_MEMBERS,
        leagues.MOST_CAPTAINS,
        leagues.MOST_LEAGUES,
    ],
    "words of a public list; of a member's own list": [words.LONGEST_LIST, words.MOST_WORDS],
    "lists of a member; active subscriptions of a member": [lists.MOST_LISTS, subscriptions.MOST_SUBSCRIPTIONS],
    "webhooks": [occurrences.MOST_WEBHOOKS],
    "letters of an idempotency key": [unit_of_work.LONGEST_KEY],
    "characters of a bearer token": [tokens.MAX_TOKEN_LENGTH],
}

IN_THE_SCHEMA = {
    "Query.league": [league_resolvers.PER_MEMBER.limit],
    "SuspectConnection.computedAt": [suspects.LIFETIME.days],
    "UpdateProfileInput.idempotencyKey": [unit_of_work.LONGEST_KEY, unit_of_work.RECEIPT_LIFETIME.days],
    "SignInAsGuestInput": [whole_signing_in.GUEST_KEY_LENGTH],
}


OF_OTHERS = {"what waits to be read by the client of a WebSocket when it sends a ping frame"}
"""Limits that asyncio sets."""
HEADINGS = {"limit", "what"}
ROWS = {
    limit: value
    for limit, value in re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|", PAGE, re.MULTILINE)
    if limit not in HEADINGS
}
FIGURE = re.compile(r"(\d[\d,]*)(?: ([KM]i?B))?(?:(?: texts)? an? (second|minute|hour|day))?")
UNITS = {"": 1, "KB": 1024, "KiB": 1024, "MiB": 1024 * 1024}


@pytest.mark.parametrize("limit", FIGURES)
def test_a_documented_limit_is_the_code_s(limit: str) -> None:
    """A row of docs/limits.md has them in the order of its first column, a rate with its period."""
    shown = []
    for figure, unit, period in FIGURE.findall(ROWS[limit]):
        number = int(figure.replace(",", "")) * UNITS[unit]
        shown.append(parse_rate(f"{number}/{period}") if period else number)
    assert shown == [parse_rate(figure) if isinstance(figure, str) else figure for figure in FIGURES[limit]]


def test_each_documented_limit_is_compared() -> None:
    """A new row has its figures in `FIGURES`."""
    assert ROWS.keys() - OF_OTHERS == FIGURES.keys()


@pytest.mark.parametrize("place", IN_THE_SCHEMA)
def test_a_limit_that_the_schema_describes_is_the_code_s(place: str) -> None:
    type_name, _, field = place.partition(".")
    named: Any = schema._schema.type_map[type_name]
    described = named.fields[field] if field else named
    assert [int(figure) for figure in re.findall(r"\d+", described.description)] == IN_THE_SCHEMA[place]


def test_each_mutation_that_asks_for_a_recent_sign_in_says_so() -> None:
    """A program must not learn it from a refusal."""
    mutations: Any = schema._schema.mutation_type
    said = f"asks for a sign-in of the last {RECENT // timedelta(minutes=1)} minutes"
    for name, field in mutations.fields.items():
        resolve = field.extensions["strawberry-definition"].base_resolver.wrapped_func
        terms = inspect.getclosurevars(resolve).nonlocals["terms"]
        assert (said in field.description) == terms.recent, name


def test_what_counts_more_than_a_call_in_the_complexity_is_named_with_its_figure() -> None:
    """A client that adds one of these to its query must not guess what made it too costly."""
    (listed,) = re.findall(r"Where more is read, more counts:(.+?\.\n)", PAGE, re.DOTALL)
    types = [each for each in schema._schema.type_map.values() if isinstance(each, GraphQLObjectType)]
    declared = {(name, declared_of(field, COMPLEXITY, 1)) for each in types for name, field in each.fields.items()}
    dear = sorted((name, figure) for name, figure in declared if figure > READ)
    assert [one for one in dear if not re.search(rf"`(\w+\.)?{one[0]}`\D*{one[1]:,}\b", listed)] == []
