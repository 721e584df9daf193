"""A test module is imported by pytest alone: what several of them need is in a module of its own."""

import ast
import re

from tests.generated import ROOT


def test_no_module_imports_from_a_test_module() -> None:
    """Helpers and queries that are shared have modules that pytest does not collect."""
    files = [file for folder in ("tests", "bench") for file in (ROOT / folder).rglob("*.py")]
    offenders = [
        f"{file.relative_to(ROOT)}: {node.module}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and re.search(r"(^|\.)test_\w+$", node.module or "")
    ]
    assert offenders == []
