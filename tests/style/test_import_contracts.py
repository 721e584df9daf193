"""Each import contract of pyproject.toml is broken by an import that it forbids, and by no other contract's."""

import ast
import importlib
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from datastore.dynamo.entity import Entity
from tests.command import ROOT

LAYERS: Final = ("server", "schema", "resolvers", "datastore")
FORBIDDEN: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "Four layers, imports only downward": (
        ("datastore/voting/votes.py", "import resolvers.requests.policy"),
        ("schema/framework/declarations.py", "import server.settings"),
    ),
    "Only datastore.dynamo imports the AWS libraries": (
        ("datastore/values/seal.py", "import botocore"),
        ("server/app.py", "import aioboto3"),
    ),
    "Only the datastore imports entities, keys, conditions and writes": (
        ("resolvers/requests/policy.py", "import datastore.dynamo.writes"),
        ("schema/framework/declarations.py", "from datastore.dynamo.entity import Entity"),
        ("server/audit/voting.py", "from datastore.dynamo import writes"),
    ),
    "Resolvers and datastore do not import GraphQL": (
        ("resolvers/requests/policy.py", "import graphql"),
        ("datastore/dynamo/entity.py", "import strawberry"),
    ),
    "The rooms of the datastore import only downward": (
        ("datastore/voting/votes.py", "import datastore.comments.planner"),
        ("datastore/changes/unit_of_work.py", "import datastore.people.profiles"),
        ("datastore/members/suspensions.py", "import datastore.whole.layout"),
        ("datastore/loose.py", ""),
    ),
    "The rooms of the resolvers import only downward": (
        ("resolvers/pickem/rules.py", "import resolvers.comments.rules"),
        ("resolvers/jobs/running.py", "import resolvers.whole.jobs"),
        ("resolvers/members/suspensions.py", "import resolvers.whole.erasing"),
        ("resolvers/loose.py", ""),
    ),
    "The rooms of the schema import only downward": (
        ("schema/voting.py", "import schema.comments"),
        ("schema/framework/declarations.py", "import schema.jobs"),
        ("schema/loose.py", ""),
    ),
    "Parts are independent in the server": (("server/demo/voting.py", "import server.demo.comments"),),
    "The server's rooms import only downward": tuple(
        (f"server/{file}", f"import server.{module}")
        for file, module in (
            ("app.py", "commands.files"),
            ("commands/files.py", "__main__"),
            ("mail/sending.py", "app"),
            ("mail/sending.py", "webhooks.signatures"),
            ("http/quotas.py", "mail.pages"),
            ("auth/errors.py", "http.quotas"),
            ("execution/turns.py", "auth.errors"),
            ("settings/fields.py", "engine.folder"),
            ("compiler/paths.py", "settings"),
            ("compiler/paths.py", "http.sse"),
        )
    ),
    "The compiler imports no other layer": tuple(
        ("server/compiler/core.py", f"import {module}")
        for module in ("datastore.values.seal", "resolvers.requests.policy", "schema.framework.declarations")
    ),
    "The transport imports nothing else of the service": tuple(
        ("datastore/dynamo/transport/client.py", f"import {module}")
        for module in ("datastore.dynamo", "datastore.dynamo.errors", "datastore.values.seal")
    ),
}
"""By contract: a file, and an import in it that breaks this contract alone."""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages and of their contracts."""
    folder = tmp_path_factory.mktemp("checkout")
    for layer in LAYERS:
        shutil.copytree(ROOT / layer, folder / layer, ignore=shutil.ignore_patterns("*.pyc", "pages"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@contextmanager
def planted(file: Path, line: str) -> Iterator[None]:
    """The file with one more line; a new file is removed afterwards."""
    text = file.read_text(encoding="utf-8") if file.exists() else None
    file.write_text(f"{text or ''}\n{line}\n", encoding="utf-8")
    try:
        yield
    finally:
        file.unlink() if text is None else file.write_text(text, encoding="utf-8")


def broken_contracts(folder: Path) -> set[str]:
    linter = Path(sys.executable).with_name("lint-imports")
    report = subprocess.run([linter], cwd=folder, capture_output=True, text=True, check=False)
    assert "Contracts: " in report.stdout, report.stdout + report.stderr
    return set(re.findall(r"(?m)^(.+) BROKEN", report.stdout))


def test_the_server_has_fourteen_rooms_at_most() -> None:
    """Folders and loose modules of its first level: more are more than a reader keeps in mind."""
    server = ROOT / "server"
    rooms = {file.relative_to(server).parts[0] for file in server.rglob("*.py")} - {"__init__.py"}
    assert len(rooms) <= 14, sorted(rooms)


def test_every_contract_is_proven_here() -> None:
    """A new contract needs an import that breaks it."""
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    assert {contract["name"] for contract in configured["contracts"]} == FORBIDDEN.keys()


def test_the_packages_keep_every_contract(checkout: Path) -> None:
    assert broken_contracts(checkout) == set()


@pytest.mark.parametrize(
    ("contract", "file", "line"), [(name, *violation) for name, listed in FORBIDDEN.items() for violation in listed]
)
def test_a_forbidden_import_breaks_its_contract_alone(checkout: Path, contract: str, file: str, line: str) -> None:
    with planted(checkout / file, line):
        assert broken_contracts(checkout) == {contract}


def test_nothing_above_the_datastore_names_an_index_or_reaches_an_entity() -> None:
    """An entity also hides behind a part's name, which no import contract sees."""
    for path in sorted(path for layer in LAYERS[:-1] for path in (ROOT / layer).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\bgsi\d", text), path
        if path.name not in ("__main__.py", "moto_server.py"):  # those run when they are imported
            assert list(_entities_in(path, text)) == [], path


def _entities_in(path: Path, text: str) -> Iterator[str]:
    """What a module's names, and attributes of the modules it imports, have of entities."""
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    names = vars(importlib.import_module(name))
    yield from (name for name, value in names.items() if isinstance(value, Entity))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = names.get(node.value.id)
            if isinstance(owner, ModuleType) and isinstance(getattr(owner, node.attr, None), Entity):
                yield f"{node.value.id}.{node.attr}"
