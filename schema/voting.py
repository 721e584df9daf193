"""Voting: boards, contenders, ballots and the leaderboard."""

from __future__ import annotations

from datetime import datetime

import strawberry

from datastore import voting as voting_store
from resolvers.voting import ballots, bradley_terry
from resolvers.voting import boards as board_resolvers  # a class with a field `boards` does not see a module `boards`
from schema.connections import connection, counted
from schema.fields import described, field
from schema.mutations import mutation
from schema.subscriptions import subscription
from schema.types import Node, enum, record_type

BOARD_SLUG = "The board's slug."

enum(
    ballots.Verdict,
    "What a voter says of the two contenders of a ballot.",
    LEFT="The left one wins.",
    RIGHT="The right one wins.",
    TIE="Neither is better.",
    SKIP="No opinion: the pair counts as seen, and nothing else.",
)


@record_type(ballots.Progress, "How far a voter is through the pairs of a board, in the present cycle.")
class BoardProgress:
    seen: int = described("Pairs the voter gave a verdict on, skips included. Starts again with a new cycle.")
    remaining: int = described("Pairs of contenders in the running that are still to come in this cycle.")


@record_type(
    bradley_terry.Strength, "Strength without regard to the order of votes (Bradley-Terry), with its 95 % interval."
)
class Strength:
    value: float = described(
        "Log-odds: of two contenders d apart the stronger wins 1/(1+e^-d) of the time. 0 is average."
    )
    low: float = described("Lower end of the interval.")
    high: float = described("Upper end of the interval.")


@record_type(voting_store.Contender, "Somebody, or something, to vote for.")
class Contender(Node):
    board: Board = field(board_resolvers.board_of, "Where it stands.")
    name: str = described("Unique on its board, without regard to case.")
    svg: str | None = field(board_resolvers.svg, "Its picture, free of anything that could act or load.")
    created_at: datetime = described("When it joined.")
    retired: bool = described("Whether it has left the draws and the leaderboard, for good.")
    wins: int = described("Votes for it, at most two seconds behind; likewise the other counts.")
    losses: int = described("Votes for the other one.")
    ties: int = described("Votes for neither.")
    score: int = described("Wins minus losses.")
    win_rate: float | None = described("Wins out of wins and losses; null before the first of them.")
    rank: int | None = field(
        board_resolvers.rank, "One more than there are contenders with a higher score; null once it has retired."
    )
    matchups: MatchupConnection = field(
        board_resolvers.matchups_of_contender, "Its head-to-head records; it stands left in all of them."
    )


@record_type(board_resolvers.LeaderboardRow, "A contender in its place.")
class LeaderboardRow:
    rank: int = described("Shared by equal scores: 1, 1, 3.")
    contender: Contender = described("Who stands here.")
    wins: int = described("Votes for it.")
    losses: int = described("Votes for the other one.")
    ties: int = described("Votes for neither.")
    score: int = described("Wins minus losses.")
    strength: Strength | None = field(
        bradley_terry.strength, "Some seconds behind the votes; null before the first vote on it."
    )


@record_type(board_resolvers.Matchup, "The head-to-head record of two contenders.")
class Matchup:
    left: Contender = field(board_resolvers.left_of, "One of the two.")
    right: Contender = field(board_resolvers.right_of, "The other one.")
    left_wins: int = described("Votes for the left one.")
    right_wins: int = described("Votes for the right one.")
    ties: int = described("Votes for neither.")
    votes: int = described("All of them; skips are none.")


@record_type(voting_store.Board, "A set of contenders that are voted on in pairs.")
class Board(Node):
    slug: str = described("Its name in queries.")
    title: str = described("Its name for people.")
    created_at: datetime = described("When it was made.")
    contender_count: int = described("Contenders in the running.")
    pair_count: int = described("Pairs that they make.")
    votes: int = described("Votes counted, ties included and skips not; at most two seconds behind.")
    contenders: ContenderConnection = field(
        board_resolvers.contenders_of_board,
        "All contenders in the order in which they joined, the retired ones among them.",
    )
    leaderboard: LeaderboardConnection = field(
        board_resolvers.leaderboard_of_board,
        "Contenders in the running: by score, then by name without regard to case, then by who joined first.",
    )
    progress: BoardProgress = field(ballots.progress, "How far the viewer is through this board's pairs.")


@record_type(ballots.DrawnBallot, "A pair issued to one voter, once, with the token that alone can vote on it.")
class Ballot:
    token: strawberry.ID = described("To be given to `castVote`. Good for this viewer only.")
    left: Contender = field(ballots.ballot_left, "Who stands left.")
    right: Contender = field(ballots.ballot_right, "Who stands right.")
    expires_at: datetime = described("Until when it may be voted on. After that draw again.")
    progress: BoardProgress = described("Where the voter stands before this pair.")
    voter: strawberry.ID = described("Whom it was issued to; an editor can void all votes of this voter.")


BoardConnection = connection(Board, "Boards, by slug.", edge="A board in a list.")
ContenderConnection = connection(
    Contender,
    "Contenders in the order in which they joined.",
    edge="A contender in a list.",
    total_count=counted(),
)
LeaderboardConnection = connection(
    LeaderboardRow,
    "Contenders in their places, best first.",
    name="Leaderboard",
    edge="A row of a leaderboard in a list.",
    total_count=counted(),
)
MatchupConnection = connection(
    Matchup, "Head-to-head records of pairs that were voted on.", edge="A head-to-head record in a list."
)


# ── queries and subscriptions ──


@strawberry.type
class VotingQuery:
    board: Board | None = field(board_resolvers.board, "A board; null if there is none.", slug=BOARD_SLUG)
    boards: BoardConnection = field(board_resolvers.boards, "All boards, by slug.")
    contender: Contender | None = field(board_resolvers.contender, "A contender.", id="The contender's id.")
    contenders: ContenderConnection = field(
        board_resolvers.contenders,
        "A board's contenders in the order in which they joined, the retired ones among them.",
        board=BOARD_SLUG,
    )
    leaderboard: LeaderboardConnection = field(
        board_resolvers.leaderboard,
        "Contenders in the running: by score, then by name without regard to case, then by who joined first.",
        board=BOARD_SLUG,
    )
    matchup: Matchup | None = field(
        board_resolvers.matchup,
        "The head-to-head record of two contenders of one board, in either order.",
        left="One contender's id.",
        right="The other one's.",
    )
    matchups: MatchupConnection = field(
        board_resolvers.matchups,
        "Head-to-head records of pairs that were voted on: a board's, or one contender's.",
        board=BOARD_SLUG,
        contender="Only this contender's, whatever its board; it stands left in all of them.",
    )


@strawberry.type
class VotingSubscription:
    leaderboard_changed: list[LeaderboardRow] = subscription(
        board_resolvers.leaderboard_changed,
        "The first rows at once, then again after each change, at most every other second.",
        board=BOARD_SLUG,
        first="How many, from the top: 1 to 100, 20 unless given.",
    )


# ── mutations ──


@strawberry.type(description="The board is there.")
class BoardCreated:
    board: Board = described("The new board.")


@strawberry.type(description="The contender joined.")
class ContenderAdded:
    contender: Contender = described("The new contender.")


@strawberry.type(description="The contender was changed.")
class ContenderUpdated:
    contender: Contender = described("The contender as it is now.")


@strawberry.type(description="The contender has retired.")
class ContenderRetired:
    contender: Contender = described("The contender; its records stay.")


@record_type(ballots.VoteCast, "The verdict is counted. A repeat of the same verdict answers the same.")
class VoteCast:
    winner: Contender | None = field(ballots.winner, "Who was voted for; null for a tie and a skip.")
    matchup: Matchup = field(ballots.matchup_of_cast, "The pair's record, this vote included.")
    progress: BoardProgress = described("Where the voter stands behind this pair.")


@strawberry.type(description="The voter's votes are taken back.")
class VoterVoided:
    votes_removed: int = described("How many were taken back now; skips count for nothing. A repeat finds none.")


@strawberry.type
class VotingMutation:
    create_board = mutation(
        board_resolvers.create_board,
        "Makes a board. For editors.",
        BoardCreated,
        input_description="A new board. For editors.",
        result_description="The new board, or why there is none.",
        slug="Its name in queries: 1 to 64 small letters, digits and dashes. For good.",
        title="Its name for people, 1 to 120 characters.",
    )
    add_contender = mutation(
        board_resolvers.add_contender,
        "Adds a contender to a board. For editors.",
        ContenderAdded,
        input_description="A new contender. For editors.",
        result_description="The new contender, or why it did not join.",
        board="Where it joins. `main` comes into being with its first.",
        name="1 to 80 characters; nobody else's on this board, without regard to case.",
        svg="Its picture, at most 48 KB. Scripts, handlers and outside references are removed.",
    )
    update_contender = mutation(
        board_resolvers.update_contender,
        "Renames or redraws a contender. For editors.",
        ContenderUpdated,
        input_description="Changes to a contender. What is left out stays. For editors.",
        result_description="The changed contender, or why it was not changed.",
        contender="The contender's id.",
        name="Another name, as for a new contender.",
        svg="Another picture; null takes the picture away.",
    )
    retire_contender = mutation(
        board_resolvers.retire_contender,
        "Retires a contender for good. For editors.",
        ContenderRetired,
        input_description="Takes a contender out of the running, for good. For editors.",
        result_description="The retired contender, or why it is still there.",
        contender="The contender's id.",
    )
    draw_matchup = mutation(
        ballots.draw_matchup,
        "The viewer's next pair. The same one comes again until it is voted or skipped.",
        Ballot,
        input_description="The next pair of a board.",
        result_description="A ballot, or why there is none.",
        takes_key=False,
        board=BOARD_SLUG,
    )
    cast_vote = mutation(
        ballots.cast_vote,
        "Counts a verdict, exactly once however often it is sent.",
        VoteCast,
        input_description="A verdict on a drawn pair.",
        result_description="The counted verdict, or why it was not counted.",
        takes_key=False,
        token="The ballot's token, unchanged.",  # noqa: S106 - a description
        verdict="What the voter says.",
    )
    void_voter = mutation(
        ballots.void_voter,
        "Takes back one voter's votes on a board. For editors.",
        VoterVoided,
        input_description="Takes back every vote of one voter on one board and settles it. For editors.",
        result_description="How many votes were taken back, or why none.",
        board=BOARD_SLUG,
        voter="A User's id, or the `voter` of a ballot or of an exported vote.",
    )
