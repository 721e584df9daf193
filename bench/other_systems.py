"""Comments of another system imported: `python -m bench.other_systems [--comments 100000] [--read 1000000]`.

A Disqus file of so many comments, a third of them replies, is imported by its command; the table is exported, and
imported by `ringside import all`. Then a larger file is read to its end, with its threads, and nothing written. Items
are of the table: each comment has several. Memory is the largest resident set of each process.
"""

import argparse
import gzip
import random
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.moves import run
from resolvers.comments.other_systems.files import disqus
from resolvers.comments.other_systems.threads import in_threads

PAGES = 1_000
AUTHORS = 5_000
START = datetime(2015, 1, 1, tzinfo=UTC)
HEAD = (
    '<?xml version="1.0" encoding="utf-8"?>\n'
    '<disqus xmlns="http://disqus.com" xmlns:dsq="http://disqus.com/disqus-internals">'
)
THREAD = '<thread dsq:id="{page}"><id/><link>https://example.com/{page}/</link></thread>'
POST = (
    '<post dsq:id="{id}"><message><![CDATA[<p>{text}</p>]]></message><createdAt>{at}</createdAt><isDeleted>false'
    "</isDeleted><isSpam>false</isSpam><author><name>Author {author}</name><isAnonymous>false</isAnonymous><username>"
    'a{author}</username></author><thread dsq:id="{page}"/>{parent}</post>'
)
WORDS = ("scene", "mask", "finale", "ring", "crowd", "story", "book", "champion", "night", "page")


def write(file: Path, comments: int) -> None:
    chance = random.Random(7)
    with file.open("w", encoding="utf-8") as out:
        print(HEAD, file=out)
        for page in range(PAGES):
            print(THREAD.format(page=page), file=out)
        for number in range(comments):
            parent = number - PAGES * chance.randint(1, 5)
            answered = f'<parent dsq:id="p{parent}"/>' if parent >= 0 and number % 3 == 0 else ""
            at = (START + timedelta(seconds=300 * number)).strftime("%Y-%m-%dT%H:%M:%SZ")
            text = " ".join(chance.choices(WORDS, k=40))
            post = POST.format(id=f"p{number}", text=text, at=at, author=chance.randrange(AUTHORS), page=number % PAGES,
                               parent=answered)  # fmt: skip
            print(post, file=out)
        print("</disqus>", file=out)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comments", type=int, default=100_000)
    parser.add_argument("--read", type=int, default=1_000_000)
    parser.add_argument("--only-read", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.only_read:
        print(f"{sum(row.problem is None for row in in_threads(disqus(given.only_read))):,} comments were read.")
        return
    with tempfile.TemporaryDirectory(prefix="ringside-imports-") as name:
        folder = Path(name)
        file, export = folder / "disqus.xml", folder / "table.export"
        write(file, given.comments)
        imported = run("import disqus", ("import", "disqus", str(file), "--product", "{path}"), folder / "data")
        run("export", ("export", "all", str(export)), folder / "data")
        with gzip.open(export) as lines:
            items = sum(b'"pk":' in line for line in lines)
        moved = run("import all", ("import", "all", str(export)), folder / "other")
        per_second, items_per_second = given.comments / imported.seconds, items / moved.seconds
        write(file, given.read)
        read = run("read", ("--only-read", str(file)), folder / "none", "bench.other_systems")
    print(f"import disqus: {given.comments:,} comments, {imported.seconds:.0f} s, {imported.megabytes:.0f} MB")
    print(f"import all: {items:,} items, {moved.seconds:.0f} s")
    print(f"comments a second for each item a second: {per_second / items_per_second:.2f}")
    print(f"reading {given.read:,} comments: {read.seconds:.0f} s, {read.megabytes:.0f} MB")


if __name__ == "__main__":
    main()
