"""Clients that sites use, as npm and PyPI have them, against the running service."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from gql import Client as GqlClient
from gql import gql
from gql.client import AsyncClientSession
from gql.transport.aiohttp import AIOHTTPTransport
from gql.transport.exceptions import TransportQueryError
from gql.transport.websockets import WebsocketsTransport
from graphql import GraphQLError, parse, validate

from schema import schema
from tests.npm import FOLDER, node_with
from tests.queries import DELETE_COMMENT
from tests.service import ROOT, Service, running_service

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
HEARD = 'subscription { commentPosted(product: "gql") { id body } }'


@pytest.mark.parametrize(
    ("name", "package"),
    [("apollo", "@apollo/client"), ("urql", "@urql/exchange-graphcache"), ("relay", "relay-runtime")],
)
def test_a_client_from_npm_works_with_its_cache(service: Service, name: str, package: str) -> None:
    """It pages through its cache, writes, hears over a socket, deletes and understands refusals.

    Apollo and urql ask by hash first. Relay sends what its compiler made of the schema.
    """
    command = [node_with(package), "clients.mjs", name, f"{service.url}/graphql", service.token(f"{name}-member")]
    client = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=60, check=False)
    assert client.returncode == 0, client.stderr
    assert json.loads(client.stdout) == {
        "paged": ["three", "two", "one"],
        "heard": "heard",
        "deleted": True,
        "refused": "INVALID_INPUT",
        "error": "GRAPHQL_VALIDATION_FAILED",
    }
    assert client.stderr == ""


def test_codegen_s_persisted_documents_are_a_manifest_as_they_are(tmp_path: Path) -> None:
    """A service that trusts only them runs them by their hashes, over HTTP and sockets, and refuses any other."""
    node = node_with("@graphql-codegen/client-preset")
    generated = tmp_path / "generated"
    made = subprocess.run(
        [node, "codegen.mjs", str(ROOT / "schema" / "schema.graphql"), str(generated)],
        cwd=FOLDER,
        input=operations(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    variables = {
        "RINGSIDE_DATA": str(tmp_path / "data"),
        "RINGSIDE_TRUSTED_DOCUMENTS": str(generated / "persisted-documents.json"),
    }
    with running_service(variables) as service:
        command = [
            str(node),
            "clients.mjs",
            "codegen",
            f"{service.url}/graphql",
            service.token("member"),
            str(generated),
        ]
        client = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=60, check=False)
    assert client.returncode == 0, client.stderr
    assert json.loads(client.stdout) == {
        "paged": ["three", "two", "one"],
        "heard": "heard",
        "deleted": True,
        "refused": "INVALID_INPUT",
        "error": "BAD_USER_INPUT",
    }
    assert client.stderr == ""


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
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(sys.executable, "-m", "venv", "venv")
    run(python, "-m", "pip", "install", "-qq", "--require-hashes", "-r", "requirements.lock")
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
    http = GqlClient(transport=AIOHTTPTransport(address, headers=headers), fetch_schema_from_transport=True)
    socket = GqlClient(
        transport=WebsocketsTransport(address.replace("http", "ws"), init_payload=headers),
        fetch_schema_from_transport=False,
    )
    async with http as session, socket as listening:
        posted = [await _post(session, body) for body in ("one", "two", "three")]
        assert [node async for node in _pages(session)] == posted[::-1]
        heard = asyncio.ensure_future(anext(listening.subscribe(gql(HEARD))))
        while not heard.done():  # until the subscription has begun
            posted.append(await _post(session, "heard"))
            await asyncio.wait([heard], timeout=0.2)
        assert heard.result()["commentPosted"] in posted[3:]
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
