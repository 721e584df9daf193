"""The two pages that every server answers from memory, and their data."""

import json
from pathlib import Path
from typing import Any

COMMENTS = """query Comments($first: Int!) {
  comments(first: $first) {
    edges { cursor node { id text rating createdAt edited author { id name avatarUrl } } }
    pageInfo { hasNextPage endCursor }
    totalCount
  }
}"""

LEADERBOARD = """query Leaderboard($first: Int!) {
  leaderboard(first: $first) { rank score wins losses contender { id name imageUrl } }
}"""

PAGES: dict[str, tuple[str, dict[str, Any]]] = {
    "comments": (COMMENTS, {"first": 20}),
    "leaderboard": (LEADERBOARD, {"first": 100}),
}

_TEXT = "The third round was the one to watch: nobody expected the left hand, least of all the one it met. "


def data() -> dict[str, Any]:
    """Return twenty comments by twenty people, and a hundred contenders."""
    return {
        "comments": [
            {
                "id": f"comment-{number:04d}",
                "cursor": f"Y3Vyc29yOmNvbW1lbnQ{number:04d}",
                "text": _TEXT * 3,
                "rating": number % 5 + 1,
                "createdAt": f"2026-11-{number + 1:02d}T20:00:00.000Z",
                "edited": number % 7 == 0,
                "authorId": f"user-{number * 7 % 20:02d}",
            }
            for number in range(20)
        ],
        "users": [
            {"id": f"user-{n:02d}", "name": f"Member {n}", "avatarUrl": f"https://pictures.example/{n}.png"}
            for n in range(20)
        ],
        "contenders": [
            {
                "id": f"contender-{number:03d}",
                "name": f"Contender {number}",
                "imageUrl": f"https://pictures.example/contenders/{number}.webp",
                "rank": number + 1,
                "score": 500 - number,
                "wins": 900 - number,
                "losses": 400,
            }
            for number in range(100)
        ],
    }


def write(path: Path) -> None:
    path.write_text(json.dumps(data()), encoding="utf-8")
