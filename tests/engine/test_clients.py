"""Clients that sites use, as npm and PyPI have them, against the running service, set up as the guide prints it."""

import ast
import asyncio
import json
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from gql import Client as GqlClient
from gql import gql
from gql.client import AsyncClientSession
from gql.transport.aiohttp import AIOHTTPTransport
from gql.transport.exceptions import TransportQueryError
from gql.transport.websockets import WebsocketsTransport
from graphql import GraphQLError, GraphQLScalarType, parse, specified_scalar_types, validate

from schema import schema
from tests.command import ROOT
from tests.npm import FOLDER, node_with
from tests.queries import DELETE_COMMENT
from tests.service import Service, running_service
from tests.waiting import LONGEST, turns

CLIENTS = FOLDER / "clients.mjs"
OPERATION = re.compile(r"`((?:query|mutation) [^`]*)`|\"(subscription [^\"]*)\"")
PAGE = """
query ($after: String) {
  comments(product: "gql", first: 2, after: $after) { nodes { id body } pageInfo { hasNextPage endCursor } }
}
"""
POST = """
mutation ($input: PostCommentInput!) { postComment(input: $input) { ... on CommentPosted { comment { id body } } } }
"""
SNIPPET = re.compile(r"^ *```(\w+)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
COMPILED = {
    "strict": True,
    "noEmit": True,
    "target": "es2022",
    "module": "esnext",
    "moduleResolution": "bundler",
    "types": ["node"],
    "skipLibCheck": True,
    "erasableSyntaxOnly": True,
    "allowImportingTsExtensions": True,
}
"""As Vite's templates have it."""
CODEGEN_CLI = """
declare module "@graphql-codegen/cli" {
  export type CodegenConfig = import("@graphql-codegen/plugin-helpers").Types.Config;
}
"""
"""The type as the command line exports it, without the 100 packages that it brings."""
USE = """
import { unwrap } from "./refusals.ts";
import type { DeleteMutation } from "./src/gql/graphql.ts";

export const deleted = (data: DeleteMutation): string => unwrap(data.deleteComment).deletedId;
// @ts-expect-error: the payload has no code
export const code = (data: DeleteMutation) => unwrap(data.deleteComment).code;
"""
DELETE_REFUSED = """
mutation { deleteComment(input: { comment: "x" }) { __typename ... on Refused { code message } } }
"""
HEARD = 'subscription { commentPosted(product: "gql") { id body } }'


def snippets(language: str) -> list[str]:
    """What docs/clients.md prints in a language."""
    text = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
    return [textwrap.dedent(snippet) for found, snippet in SNIPPET.findall(text) if found == language]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the guide's snippets in TypeScript, the schema, and the packages of npm."""
    folder = tmp_path_factory.mktemp("printed")
    refusals, apollo, evicting, types_without_id, urql, codegen, trusted_apollo, trusted_urql = snippets("ts")
    files = {
        "refusals.ts": refusals,
        "apollo.ts": f"{apollo}\nexport function forget(deletedId: string) {{\n{evicting}}}\n",
        "urql.ts": types_without_id + urql,
        "codegen.ts": codegen,
        "trusted-apollo.ts": trusted_apollo,
        "trusted-urql.ts": trusted_urql,
        "cli.d.ts": CODEGEN_CLI,
        "use.ts": USE,
        "package.json": '{"type": "module"}',
        "tsconfig.json": json.dumps({"compilerOptions": COMPILED}),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    shutil.copy(ROOT / "schema" / "schema.graphql", folder)
    (folder / "node_modules").symlink_to(FOLDER / "node_modules")
    return folder


@pytest.fixture(scope="module")
def generated(printed: Path) -> Path:
    """What graphql-codegen makes of the clients' operations, with the configuration that the guide prints."""
    node = node_with("@graphql-codegen/client-preset")
    command = [node, str(FOLDER / "codegen.mjs"), "schema.graphql", str(printed)]
    made = subprocess.run(
        command, cwd=printed, input=operations(), capture_output=True, text=True, timeout=LONGEST, check=False
    )
    assert made.returncode == 0, made.stderr
    return printed / "src" / "gql"


def run_client(name: str, package: str, printed: Path, service: Service) -> Any:
    arguments = [name, f"{service.url}/graphql", service.token(f"{name}-member"), str(printed)]
    command = [node_with(package), str(FOLDER / "clients.mjs"), *arguments]
    client = subprocess.run(command, cwd=printed, capture_output=True, text=True, timeout=LONGEST, check=False)
    assert client.returncode == 0, client.stderr
    assert client.stderr == ""
    return json.loads(client.stdout)


@pytest.mark.usefixtures("generated")
def test_the_guides_typescript_is_accepted_by_the_compiler(printed: Path) -> None:
    """Each snippet as it is printed, in strict mode, and `unwrap` with the types that graphql-codegen makes."""
    command = [node_with("typescript"), "node_modules/typescript/bin/tsc", "-p", "."]
    checked = subprocess.run(command, cwd=printed, capture_output=True, text=True, timeout=LONGEST, check=False)
    assert checked.returncode == 0, checked.stdout


def test_the_guide_names_every_scalar_of_the_schema() -> None:
    """Code generators take one that they do not know for `any`."""
    named = {name for name, type_ in schema._schema.type_map.items() if isinstance(type_, GraphQLScalarType)}
    (relay,) = map(json.loads, snippets("json"))
    assert relay["customScalarTypes"].keys() == named - specified_scalar_types.keys()
    assert (
        json.dumps(relay["customScalarTypes"])[1:-1].replace('"DateTime"', "DateTime").replace('"Date"', "Date")
        in (snippets("ts")[5])
    )


def test_the_guides_python_works(service: Service) -> None:
    """The query prints the leaderboard; `unwrap` raises what is refused and returns the rest."""
    unwrapping, query = snippets("python")
    query = query.replace("http://127.0.0.1:8000", service.url).replace("Bearer …", f"Bearer {service.token('reader')}")
    run = subprocess.run([sys.executable, "-c", query], capture_output=True, text=True, timeout=LONGEST, check=False)
    assert len(ast.literal_eval(run.stdout)["leaderboard"]["nodes"]) == 3, run.stderr
    names: dict[str, Any] = {}
    exec(compile(unwrapping, "clients.md", "exec"), names)
    body = {"query": DELETE_REFUSED}
    headers = {"Authorization": f"Bearer {service.token('reader')}"}
    answer = httpx.post(f"{service.url}/graphql", json=body, headers=headers, timeout=LONGEST).json()["data"][
        "deleteComment"
    ]
    with pytest.raises(names["Refused"]) as refused:
        names["unwrap"](answer)
    assert (refused.value.code, str(refused.value)) == (answer["code"], answer["message"])
    assert names["unwrap"]({"__typename": "CommentDeleted", "deletedId": "1"})["deletedId"] == "1"


@pytest.mark.parametrize(
    ("name", "package"),
    [("apollo", "@apollo/client"), ("urql", "@urql/exchange-graphcache"), ("relay", "relay-runtime")],
)
def test_a_client_from_npm_works_with_its_cache(service: Service, printed: Path, name: str, package: str) -> None:
    """It pages through its cache, writes, hears over a socket, deletes and understands refusals.

    Apollo and urql ask by hash first. Relay sends what its compiler made of the schema.
    """
    assert run_client(name, package, printed, service) == {
        "paged": ["three", "two", "one"],
        "heard": "heard",
        "deleted": True,
        "refused": "INVALID_INPUT",
        "error": "GRAPHQL_VALIDATION_FAILED",
    }


def test_codegen_s_persisted_documents_are_a_manifest_as_they_are(
    printed: Path, generated: Path, tmp_path: Path
) -> None:
    """A service that trusts only them runs them by their hashes, over HTTP and sockets, and refuses any other.

    Apollo and urql send these hashes too, and keep what they get in their caches.
    """
    variables = {
        "RINGSIDE_DATA": str(tmp_path),
        "RINGSIDE_TRUSTED_DOCUMENTS": str(generated / "persisted-documents.json"),
    }
    with running_service(variables) as service:
        for name, package, error in (
            ("codegen", "graphql-ws", "BAD_USER_INPUT"),
            ("trusted-apollo", "@apollo/client", "INVALID_CURSOR"),
            ("trusted-urql", "@urql/exchange-persisted", "INVALID_CURSOR"),
        ):
            assert run_client(name, package, printed, service) == {
                "paged": ["three", "two", "one"],
                "heard": "heard",
                "deleted": True,
                "refused": "INVALID_INPUT",
                "error": error,
            }, name


def operations() -> str:
    """What the clients of npm ask, for code generators."""
    texts = re.findall(OPERATION, CLIENTS.read_text(encoding="utf-8"))
    return "\n".join(one or other for one, other in texts)


def test_the_client_that_ariadne_codegen_makes_works(service: Service, tmp_path: Path) -> None:
    """In an environment of its own, since it needs an older graphql-core than the service."""
    shutil.copytree(ROOT / "tests" / "ariadne", tmp_path, dirs_exist_ok=True)
    shutil.copy(ROOT / "schema" / "schema.graphql", tmp_path)
    (tmp_path / "operations.graphql").write_text(operations(), encoding="utf-8")
    scripts = tmp_path / "venv" / "bin"
    python = str(scripts / "python")

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LONGEST, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(sys.executable, "-m", "venv", "--without-pip", "venv")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "-qq", "--no-compile")
    run(*pip, "--require-hashes", "-r", "requirements.lock")
    run(str(scripts / "ariadne-codegen"), "client")
    assert json.loads(run(python, "client.py", f"{service.url}/graphql", service.token("ariadne-member"))) == {
        "paged": ["three", "two", "one"],
        "heard": "heard",
        "deleted": True,
        "refused": "INVALID_INPUT",
        "error": "INVALID_CURSOR",
    }


def test_what_the_relay_compiler_made_fits_the_schema() -> None:
    """It is committed, since the compiler brings 118 MB of binaries; so a change of the schema must not pass it by."""
    artifacts = sorted((FOLDER / "relay" / "__generated__").glob("*.graphql.js"))
    assert len(artifacts) == 4
    for artifact in artifacts:
        found = re.search(r'"text": (".*")$', artifact.read_text(encoding="utf-8"), re.MULTILINE)
        assert found is not None, artifact.name
        assert validate(schema._schema, parse(json.loads(found[1]))) == [], artifact.name


async def test_gql_works_with_the_schema_it_fetched(service: Service) -> None:
    """The usual client in Python validates against the schema, pages, writes, hears, deletes and is refused."""
    headers = {"Authorization": f"Bearer {service.token('gql-member')}"}
    address = f"{service.url}/graphql"
    http = GqlClient(
        transport=AIOHTTPTransport(address, headers=headers),
        fetch_schema_from_transport=True,
        execute_timeout=LONGEST,
    )
    socket = GqlClient(
        transport=WebsocketsTransport(
            address.replace("http", "ws"), init_payload=headers, connect_timeout=LONGEST, ack_timeout=LONGEST
        ),
        fetch_schema_from_transport=False,
        execute_timeout=LONGEST,
    )
    async with http as session, socket as listening:
        posted = [await _post(session, body) for body in ("one", "two", "three")]
        assert [node async for node in _pages(session)] == posted[::-1]
        subscription = listening.subscribe(gql(HEARD))
        heard = asyncio.ensure_future(anext(subscription))
        while not heard.done():  # until the subscription has begun
            posted.append(await _post(session, "heard"))
            await asyncio.wait([heard], timeout=0.2)
        assert heard.result()["commentPosted"] in posted[3:]
        await subscription.aclose()
        deleted = await _ask(session, DELETE_COMMENT, input={"comment": posted[0]["id"]})
        assert deleted == {"deleteComment": {"deletedId": posted[0]["id"]}}
        assert posted[0] not in [node async for node in _pages(session)]
        refused = await _ask(session, DELETE_COMMENT, input={"comment": "x"})
        assert refused["deleteComment"]["code"] == "INVALID_INPUT"
        with pytest.raises(TransportQueryError, match="cursor") as error:
            await _ask(session, PAGE, after="x")
        assert (error.value.errors or [{}])[0]["extensions"]["code"] == "INVALID_CURSOR"
        with pytest.raises(GraphQLError, match="nothing"):
            await _ask(session, "{ viewer { nothing } }")
    await turns()  # the client does not wait until its connections have closed


async def _ask(session: AsyncClientSession, text: str, **variables: Any) -> dict[str, Any]:
    request = gql(text)
    request.variable_values = variables
    return await session.execute(request)


async def _post(session: AsyncClientSession, body: str) -> Any:
    comment = {"product": "gql", "language": "en", "rating": 5, "body": body}
    return (await _ask(session, POST, input=comment))["postComment"]["comment"]


async def _pages(session: AsyncClientSession) -> AsyncIterator[Any]:
    after, more = None, True
    while more:
        page = (await _ask(session, PAGE, after=after))["comments"]
        for node in page["nodes"]:
            yield node
        after, more = page["pageInfo"]["endCursor"], page["pageInfo"]["hasNextPage"]
