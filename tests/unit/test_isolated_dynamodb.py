"""DynamoDB Local where a process may not have a network of its own."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from server.engine import run_engine_async
from tests.engines import engine_program

REFUSING = """
from tests import isolated_dynamodb

def refuse(*_):
    raise PermissionError

isolated_dynamodb.{refused} = refuse
isolated_dynamodb.main()
"""


@pytest.mark.parametrize("refused", ["enter_empty_network", "fcntl.ioctl"])
@pytest.mark.slow
async def test_two_engines_run_side_by_side_without_namespaces(tmp_path: Path, refused: str) -> None:
    """In containers no namespace can be created; ordinary users of Ubuntu cannot set up its loopback interface."""
    program = engine_program("dynamodb-local", tmp_path)

    def command(host: str, port: int) -> Sequence[str]:
        python, _, _, *arguments = program.command(host, port)
        return python, "-c", REFUSING.format(refused=refused), *arguments

    async with AsyncExitStack() as stack:
        for name in ("one", "other"):
            engine = run_engine_async(tmp_path / name, program=replace(program, command=command))
            assert (await stack.enter_async_context(engine)).pid
