"""The data as records, for the Python servers that share this project's environment."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class User:
    id: str
    name: str
    avatar_url: str


@dataclass(frozen=True, slots=True)
class Comment:
    id: str
    cursor: str
    text: str
    rating: int
    created_at: str
    edited: bool
    author_id: str


@dataclass(frozen=True, slots=True)
class Contender:
    id: str
    name: str
    image_url: str


@dataclass(frozen=True, slots=True)
class Row:
    rank: int
    score: int
    wins: int
    losses: int
    contender: Contender


class Edge(NamedTuple):
    cursor: str
    node: Comment


class PageInfo(NamedTuple):
    has_next_page: bool
    end_cursor: str | None


class Page(NamedTuple):
    edges: list[Edge]
    page_info: PageInfo
    total_count: int


_data = json.loads(Path(os.environ["BENCH_DATA"]).read_text(encoding="utf-8"))
USERS = {user["id"]: User(user["id"], user["name"], user["avatarUrl"]) for user in _data["users"]}
COMMENTS = [
    Comment(c["id"], c["cursor"], c["text"], c["rating"], c["createdAt"], c["edited"], c["authorId"])
    for c in _data["comments"]
]
ROWS = [
    Row(c["rank"], c["score"], c["wins"], c["losses"], Contender(c["id"], c["name"], c["imageUrl"]))
    for c in _data["contenders"]
]


def page(first: int) -> Page:
    comments = COMMENTS[:first]
    edges = [Edge(comment.cursor, comment) for comment in comments]
    return Page(edges, PageInfo(True, comments[-1].cursor), len(COMMENTS))
