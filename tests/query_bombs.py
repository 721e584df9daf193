"""Small documents that would be expensive to parse, to validate or to execute."""

from __future__ import annotations


def _query_bombs() -> dict[str, str]:
    aliases = " ".join(f"a{number}: viewer {{ id }}" for number in range(5000))
    return {
        "5,000 aliases": "{" + aliases + "}",
        "100 aliases": "{" + " ".join(f"a{number}: __typename" for number in range(100)) + "}",
        "2,000 levels": "{ viewer " * 2000 + "{ id }" + "}" * 2000,
        "2,000 nested lists": "{ nodes(ids: " + "[" * 2000 + "]" * 2000 + ") { id } }",
        "1,000 directives": "{ viewer " + "@include(if: true) " * 1000 + "{ id } }",
        "a field 1,000 times": "{ viewer {" + " id" * 1000 + "} }",
        "circular fragments": "{ viewer { ...a } } fragment a on User { ...b } fragment b on User { ...a }",
        "an exponential spread": "{ viewer { ...f0 } } "
        + " ".join(f"fragment f{n} on User {{ ...f{n + 1} ...f{n + 1} }}" for n in range(100))
        + " fragment f100 on User { id }",
        "deep introspection": "{ __schema { types { fields { type "
        + "{ ofType " * 25
        + "{ name }"
        + "}" * 25
        + "} } } }",
        "many tokens": "{ viewer { " + "name " * 6000 + "} }",
        "a huge number": "{ __type(name: " + "9" * 5000 + ") { name } }",
    }


QUERY_BOMBS = _query_bombs()
