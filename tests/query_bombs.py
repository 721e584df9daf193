"""Small documents that are expensive to parse, to validate, to compile or to execute."""


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
        "40 operations": " ".join(f"query Q{n} {{ viewer {{ id }} }}" for n in range(40)),
        "many tokens": "{ viewer { " + "name " * 6000 + "} }",
        "quotes that never end": '"\\' * 200_000,
        "block quotes that never end": '"""\n' + '\\"""' * 100_000,
        "a huge number": "{ __type(name: " + "9" * 5000 + ") { name } }",
        "a huge page": "{ contenders(first: " + "9" * 5000 + ") { totalCount } }",
        "a huge page from the end": "{ events(last: -" + "9" * 5000 + ") { nodes { id } } }",
        "a huge default": "query ($n: Int = " + "9" * 5000 + ") { contenders(first: $n) { totalCount } }",
    }


QUERY_BOMBS = _query_bombs()


def _largest_documents() -> dict[str, str]:
    contender = "id name score rank wins losses ties svg"
    board = "{ board { contenders { nodes { id name } } } }"
    languages = " ".join(['"en"'] * 45)
    return {
        "aliased objects": "{" + " ".join(f'a{n}: contender(id: "1") {{ {contender} }}' for n in range(40)) + "}",
        "aliased nodes": "{" + " ".join(f'a{n}: node(id: "1") {{ id }}' for n in range(40)) + "}",
        "fields to merge": "{" + "contenders(first: 1) { nodes { name score rank wins losses ties } } " * 40 + "}",
        "fragments to compare": "{ contenders(first: 1) { nodes { "
        + " ".join(f"...f{n}" for n in range(31))
        + " } } } "
        + " ".join(f"fragment f{n} on Contender {board}" for n in range(31)),
        "a long list": '{ comments(product: "1", languages: [' + '"en" ' * 1_900 + "]) { totalCount } }",
        "long lists": "{"
        + " ".join(f'a{n}: comments(product: "1", languages: [{languages}]) {{ totalCount }}' for n in range(32))
        + "}",
        "operations": " ".join(f"query Q{n} {{ ...f }}" for n in range(30))
        + " fragment f on Query { "
        + " ".join(f'a{n}: contender(id: "1") {{ id name }}' for n in range(35))
        + " }",
    }


LARGEST_DOCUMENTS = _largest_documents()
"""Each is close to a limit, and legal."""
