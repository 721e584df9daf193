"""Voting: boards, contenders, ballots and the leaderboard."""

from __future__ import annotations

from datetime import datetime

import strawberry

from datastore import voting as records
from resolvers.voting import ballots
from resolvers.voting import boards as voting
from resolvers.voting import bradley_terry as strength
from schema.shapes import (
    IDEMPOTENCY_KEY,
    Connection,
    CountedConnection,
    Edge,
    Node,
    answers,
    described,
    enum,
    field,
    mutation,
    shape,
    subscription,
    unset,
)

BOARD_SLUG = "The board's slug."

enum(
    ballots.Verdict,
    "What a voter says of the two contenders of a ballot.",
    LEFT="The left one wins.",
    RIGHT="The right one wins.",
    TIE="Neither is better.",
    SKIP="No opinion: the pair counts as seen, and nothing else.",
)


@shape(ballots.Progress, "How far a voter is through the pairs of a board, in the present cycle.")
class BoardProgress:
    seen: int = described("Pairs the voter gave a verdict on, skips included. Starts again with a new cycle.")
    remaining: int = described("Pairs of contenders in the running that are still to come in this cycle.")


@shape(strength.Strength, "Strength without regard to the order of votes (Bradley-Terry), with its 95 % interval.")
class Strength:
    value: float = described(
        "Log-odds: of two contenders d apart the stronger wins 1/(1+e^-d) of the time. 0 is average."
    )
    low: float = described("Lower end of the interval.")
    high: float = described("Upper end of the interval.")


@shape(records.Contender, "Somebody, or something, to vote for.")
class Contender(Node):
    board: Board = field(voting.board_of, "Where it stands.")
    name: str = described("Unique on its board, without regard to case.")
    svg: str | None = field(voting.svg, "Its picture, free of anything that could act or load.")
    created_at: datetime = described("When it joined.")
    retired: bool = described("Whether it has left the draws and the leaderboard, for good.")
    wins: int = described("Votes for it, at most two seconds behind; likewise the other counts.")
    losses: int = described("Votes for the other one.")
    ties: int = described("Votes for neither.")
    score: int = described("Wins minus losses.")
    win_rate: float | None = described("Wins out of wins and losses; null before the first of them.")
    rank: int | None = field(
        voting.rank, "One more than there are contenders with a higher score; null once it has retired."
    )
    matchups: MatchupConnection = field(
        voting.matchups_of_contender, "Its head-to-head records; it stands left in all of them."
    )


@shape(voting.LeaderboardRow, "A contender in its place.")
class LeaderboardRow:
    rank: int = described("Shared by equal scores: 1, 1, 3.")
    contender: Contender = described("Who stands here.")
    wins: int = described("Votes for it.")
    losses: int = described("Votes for the other one.")
    ties: int = described("Votes for neither.")
    score: int = described("Wins minus losses.")
    strength: Strength | None = field(
        strength.strength, "Some seconds behind the votes; null before the first vote on it."
    )


@shape(voting.Matchup, "The head-to-head record of two contenders.")
class Matchup:
    left: Contender = field(voting.left_of, "One of the two.")
    right: Contender = field(voting.right_of, "The other one.")
    left_wins: int = described("Votes for the left one.")
    right_wins: int = described("Votes for the right one.")
    ties: int = described("Votes for neither.")
    votes: int = described("All of them; skips are none.")


@shape(records.Board, "A set of contenders that are voted on in pairs.")
class Board(Node):
    slug: str = described("Its name in queries.")
    title: str = described("Its name for people.")
    created_at: datetime = described("When it was made.")
    contender_count: int = described("Contenders in the running.")
    pair_count: int = described("Pairs that they make.")
    votes: int = described("Votes counted, ties included and skips not; at most two seconds behind.")
    contenders: ContenderConnection = field(
        voting.contenders_of_board, "All contenders in the order in which they joined, the retired ones among them."
    )
    leaderboard: LeaderboardConnection = field(
        voting.leaderboard_of_board,
        "Contenders in the running: by score, then by name without regard to case, then by who joined first.",
    )
    progress: BoardProgress = field(ballots.progress, "How far the viewer is through this board's pairs.")


@shape(ballots.DrawnBallot, "A pair issued to one voter, once, with the token that alone can vote on it.")
class Ballot:
    token: strawberry.ID = described("To be given to `castVote`. Good for this viewer only.")
    left: Contender = field(ballots.ballot_left, "Who stands left.")
    right: Contender = field(ballots.ballot_right, "Who stands right.")
    expires_at: datetime = described("Until when it may be voted on. After that draw again.")
    progress: BoardProgress = described("Where the voter stands before this pair.")
    voter: strawberry.ID = described("Whom it was issued to; an editor can void all votes of this voter.")


# ── connections ──


@strawberry.type(description="A board in a list.")
class BoardEdge(Edge[Board]):
    pass


@strawberry.type(description="Boards, by slug.")
class BoardConnection(Connection[BoardEdge, Board]):
    pass


@strawberry.type(description="A contender in a list.")
class ContenderEdge(Edge[Contender]):
    pass


@strawberry.type(description="Contenders in the order in which they joined.")
class ContenderConnection(CountedConnection[ContenderEdge, Contender]):
    pass


@strawberry.type(description="A row of a leaderboard in a list.")
class LeaderboardEdge(Edge[LeaderboardRow]):
    pass


@strawberry.type(description="Contenders in their places, best first.")
class LeaderboardConnection(CountedConnection[LeaderboardEdge, LeaderboardRow]):
    pass


@strawberry.type(description="A head-to-head record in a list.")
class MatchupEdge(Edge[Matchup]):
    pass


@strawberry.type(description="Head-to-head records of pairs that were voted on.")
class MatchupConnection(Connection[MatchupEdge, Matchup]):
    pass


# ── queries and subscriptions ──


@strawberry.type
class VotingQuery:
    board: Board | None = field(voting.board, "A board; null if there is none.", slug=BOARD_SLUG)
    boards: BoardConnection = field(voting.boards, "All boards, by slug.")
    contender: Contender | None = field(voting.contender, "A contender.", id="The contender's id.")
    contenders: ContenderConnection = field(
        voting.contenders,
        "A board's contenders in the order in which they joined, the retired ones among them.",
        board=BOARD_SLUG,
    )
    leaderboard: LeaderboardConnection = field(
        voting.leaderboard,
        "Contenders in the running: by score, then by name without regard to case, then by who joined first.",
        board=BOARD_SLUG,
    )
    matchup: Matchup | None = field(
        voting.matchup,
        "The head-to-head record of two contenders of one board, in either order.",
        left="One contender's id.",
        right="The other one's.",
    )
    matchups: MatchupConnection = field(
        voting.matchups,
        "Head-to-head records of pairs that were voted on: a board's, or one contender's.",
        board=BOARD_SLUG,
        contender="Only this contender's, whatever its board; it stands left in all of them.",
    )


@strawberry.type
class VotingSubscription:
    leaderboard_changed: list[LeaderboardRow] = subscription(
        voting.leaderboard_changed,
        "The first rows at once, then again after each change, at most every other second.",
        board=BOARD_SLUG,
        first="How many, from the top: 1 to 100, 20 unless given.",
    )


# ── mutations ──


@strawberry.input(description="A new board. For editors.")
class CreateBoardInput:
    slug: str = described("Its name in queries: 1 to 64 small letters, digits and dashes. For good.")
    title: str = described("Its name for people, 1 to 120 characters.")
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.type(description="The board is there.")
class BoardCreated:
    board: Board = described("The new board.")


CreateBoardResult = answers("CreateBoardResult", BoardCreated, "The new board, or why there is none.")


@strawberry.input(description="A new contender. For editors.")
class AddContenderInput:
    board: str = strawberry.field(description="Where it joins. `main` comes into being with its first.", default="main")
    name: str = described("1 to 80 characters; nobody else's on this board, without regard to case.")
    svg: str | None = unset("Its picture, at most 48 KB. Scripts, handlers and outside references are removed.")
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.type(description="The contender joined.")
class ContenderAdded:
    contender: Contender = described("The new contender.")


AddContenderResult = answers("AddContenderResult", ContenderAdded, "The new contender, or why it did not join.")


@strawberry.input(description="Changes to a contender. What is left out stays. For editors.")
class UpdateContenderInput:
    contender: strawberry.ID = described("The contender's id.")
    name: str | None = unset("Another name, as for a new contender.")
    svg: str | None = unset("Another picture; null takes the picture away.")
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.type(description="The contender was changed.")
class ContenderUpdated:
    contender: Contender = described("The contender as it is now.")


UpdateContenderResult = answers(
    "UpdateContenderResult", ContenderUpdated, "The changed contender, or why it was not changed."
)


@strawberry.input(description="Takes a contender out of the running, for good. For editors.")
class RetireContenderInput:
    contender: strawberry.ID = described("The contender's id.")
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.type(description="The contender has retired.")
class ContenderRetired:
    contender: Contender = described("The contender; its records stay.")


RetireContenderResult = answers(
    "RetireContenderResult", ContenderRetired, "The retired contender, or why it is still there."
)


@strawberry.input(description="The next pair of a board.")
class DrawMatchupInput:
    board: str = strawberry.field(description=BOARD_SLUG, default="main")


DrawMatchupResult = answers("DrawMatchupResult", Ballot, "A ballot, or why there is none.")


@strawberry.input(description="A verdict on a drawn pair.")
class CastVoteInput:
    token: strawberry.ID = described("The ballot's token, unchanged.")
    verdict: ballots.Verdict = described("What the voter says.")


@shape(ballots.VoteCast, "The verdict is counted. A repeat of the same verdict answers the same.")
class VoteCast:
    winner: Contender | None = field(ballots.winner, "Who was voted for; null for a tie and a skip.")
    matchup: Matchup = field(ballots.matchup_of_cast, "The pair's record, this vote included.")
    progress: BoardProgress = described("Where the voter stands behind this pair.")


CastVoteResult = answers("CastVoteResult", VoteCast, "The counted verdict, or why it was not counted.")


@strawberry.input(description="Takes back every vote of one voter on one board and settles it. For editors.")
class VoidVoterInput:
    board: str = strawberry.field(description=BOARD_SLUG, default="main")
    voter: strawberry.ID = described("A User's id, or the `voter` of a ballot or of an exported vote.")
    idempotency_key: str | None = unset(IDEMPOTENCY_KEY)


@strawberry.type(description="The voter's votes are taken back.")
class VoterVoided:
    votes_removed: int = described("How many were taken back now; skips count for nothing. A repeat finds none.")


VoidVoterResult = answers("VoidVoterResult", VoterVoided, "How many votes were taken back, or why none.")


@strawberry.type
class VotingMutation:
    create_board: CreateBoardResult = mutation(
        voting.create_board, CreateBoardInput, BoardCreated, "Makes a board. For editors."
    )
    add_contender: AddContenderResult = mutation(
        voting.add_contender, AddContenderInput, ContenderAdded, "Adds a contender to a board. For editors."
    )
    update_contender: UpdateContenderResult = mutation(
        voting.update_contender, UpdateContenderInput, ContenderUpdated, "Renames or redraws a contender. For editors."
    )
    retire_contender: RetireContenderResult = mutation(
        voting.retire_contender, RetireContenderInput, ContenderRetired, "Retires a contender for good. For editors."
    )
    draw_matchup: DrawMatchupResult = mutation(
        ballots.draw_matchup,
        DrawMatchupInput,
        Ballot,
        "The viewer's next pair. The same one comes again until it is voted or skipped.",
    )
    cast_vote: CastVoteResult = mutation(
        ballots.cast_vote, CastVoteInput, VoteCast, "Counts a verdict, exactly once however often it is sent."
    )
    void_voter: VoidVoterResult = mutation(
        ballots.void_voter, VoidVoterInput, VoterVoided, "Takes back one voter's votes on a board. For editors."
    )
