"""Voting: boards, contenders, ballots and the leaderboard."""

from __future__ import annotations

from datetime import datetime

import strawberry

from datastore.voting import boards as board_store
from datastore.voting.contenders import Contender as StoredContender
from datastore.voting.votes import Verdict
from resolvers.voting import ballots, bradley_terry, suspects, svg, visibility, visits, voiding
from resolvers.voting import boards as board_resolvers  # a class with a field `boards` does not see a module `boards`
from resolvers.whole.mutations import Terms
from schema.framework.declarations import (
    COUNTED,
    READ,
    Node,
    connection,
    described,
    enum,
    field,
    mutation,
    object_type,
    record_type,
    subscription,
)
from schema.jobs import Job

# ── types ──

BOARD_SLUG = "The board's slug."
MATCHUPS_COMPLEXITY = 400
"""A page of one contender's records makes up to nine calls, and takes 150 units on a board with 64 shards."""
MATCHUP_COMPLEXITY = 8
"""Each record is merged from the shards, which takes as long as eight fields."""
SHORT_PAGES = (
    "A page of one contender's records may have fewer than `first`, or none, while `hasNextPage` is true: go on with "
    f"`endCursor`. Counts as {MATCHUPS_COMPLEXITY} fields in the complexity."
)
LEADERBOARD_ORDER = (
    "Active contenders by score, then by name, character by character and ignoring case. A name comes after longer "
    "names that continue it with a space, `!` or a double quote: Ana Maria before Ana before Anabel. While votes are "
    "counted, a contender that moves may appear on two pages or on none."
)

HIDDEN = " Null while results are hidden."

enum(
    Verdict,
    "A voter's verdict on the two contenders of a ballot.",
    LEFT="The left one wins.",
    RIGHT="The right one wins.",
    TIE="Neither is better.",
    SKIP="No opinion: the pair only counts as seen.",
)


enum(
    board_store.Electorate,
    "Who may vote on a board.",
    EVERYBODY="Visitors and members.",
    MEMBERS="Members who have signed in: no visitors, guests or API keys.",
)
enum(
    board_store.ResultsVisible,
    "When a board's results are shown: counts, ranks, strengths, the leaderboard and head-to-head records. Editors and "
    "admins always see them.",
    ALWAYS="At all times.",
    AFTER_CLOSE="Once the board has closed.",
    AFTER_VOTING="To each viewer once a vote of theirs counts, and to all once the board has closed. A skip is none.",
)


@record_type(ballots.Progress, "A voter's progress through a board's pairs in the current cycle.")
class BoardProgress:
    seen: int = described(
        "The number of pairs with a verdict by the voter, including skips. A new cycle starts again at 0."
    )
    remaining: int = described("The number of pairs of active contenders left in this cycle.")


@record_type(
    bradley_terry.Strength,
    "Bradley-Terry strength, which does not depend on the order of votes, with its 95 % interval.",
)
class Strength:
    value: float = described(
        "Log-odds: if two contenders differ by d, the stronger one wins 1/(1+e^-d) of the time. 0 is average."
    )
    low: float = described("Lower end of the interval.")
    high: float = described("Upper end of the interval.")


@record_type(StoredContender, "Someone or something to vote for.")
class Contender(Node):
    board: Board = field(board_resolvers.contender_board, "Its board.")
    name: str = described("Unique on its board, ignoring case.")
    description: str | None = field(
        board_resolvers.description, "A few lines about it, as plain text. Escape it when you show it."
    )
    link: str | None = field(board_resolvers.link, "A page about it, over HTTPS.")
    svg: str | None = field(
        board_resolvers.svg,
        "Its picture as sanitised SVG, without scripts or outside references.",
        complexity=10,  # a page of a hundred, which may be megabytes, is dear then
    )
    image_url: str | None = field(
        board_resolvers.image_url,
        "The address of a picture, over HTTPS, on a host that the operator allowed. Show it if there is no `svg`.",
    )
    created_at: datetime = described("When it joined.")
    retired: bool = described("Whether it has left the draws and the leaderboard.")
    revision: int = described("Another number after each change of it.")
    wins: int | None = described("Votes for it. Like the other counts, at most two seconds old." + HIDDEN)
    losses: int | None = described("Votes for the other contender." + HIDDEN)
    ties: int | None = described("Votes for neither." + HIDDEN)
    score: int | None = described("Wins minus losses." + HIDDEN)
    win_rate: float | None = described("Wins as a share of wins plus losses; null if there are none." + HIDDEN)
    rank: int | None = field(
        visibility.rank,
        "One more than the number of contenders with a higher score; null if it has retired." + HIDDEN,
        complexity=READ // 2,  # a board's order is a call, which only contenders of the same board share
    )
    matchups: MatchupConnection = field(
        board_resolvers.contender_matchups,
        "Its head-to-head records; it is the left one in all of them. None while results are hidden. " + SHORT_PAGES,
        complexity=MATCHUPS_COMPLEXITY,
        complexity_of_each=MATCHUP_COMPLEXITY,
    )


@record_type(visibility.LeaderboardRow, "A ranked contender.")
class LeaderboardRow:
    rank: int | None = described("The rank, shared by equal scores: 1, 1, 3." + HIDDEN)
    contender: Contender = described("The contender in this row.")
    wins: int | None = described("Votes for it." + HIDDEN)
    losses: int | None = described("Votes for the other contender." + HIDDEN)
    ties: int | None = described("Votes for neither." + HIDDEN)
    score: int | None = described("Wins minus losses." + HIDDEN)
    strength: Strength | None = field(
        visibility.strength, "The strength, a few seconds old; null before the first vote."
    )


@record_type(visibility.Matchup, "The head-to-head record of two contenders.")
class Matchup:
    left: Contender = field(board_resolvers.matchup_left, "One of the two.")
    right: Contender = field(board_resolvers.matchup_right, "The other one.")
    left_wins: int | None = described("Votes for the left one." + HIDDEN)
    right_wins: int | None = described("Votes for the right one." + HIDDEN)
    ties: int | None = described("Votes for neither." + HIDDEN)
    votes: int | None = described("The total, without skips." + HIDDEN)


@record_type(visibility.ShownBoard, "A set of contenders to vote on in pairs.")
class Board(Node):
    slug: str = described("The name used in queries.")
    title: str = described("The name shown to people.")
    created_at: datetime = described("When it was created.")
    opens_at: datetime | None = described("The time from which it takes votes; null if there is no such limit.")
    closes_at: datetime | None = described("The time from which it takes no more votes; null if it stays open.")
    electorate: board_store.Electorate = described("Who may vote on it.")
    members_since: datetime | None = described("If set, only members whose `joinedAt` is not later may vote on it.")
    closed: bool = field(board_resolvers.closed, "Whether it takes no votes now: it has not opened, or has closed.")
    revision: int = described("Another number after each change of its settings.")
    contender_count: int = described("The number of active contenders.")
    pair_count: int = described("The number of pairs of active contenders.")
    votes: int | None = field(
        visibility.votes, "The number of votes, including ties but not skips; at most two seconds old." + HIDDEN
    )
    results_visible: board_store.ResultsVisible = described("When its results are shown.")
    results_hidden: bool = described("Whether its results are hidden from the viewer now.")
    contenders: ContenderConnection = field(
        board_resolvers.board_contenders,
        "All contenders in the order they joined, including retired ones.",
        complexity=2 * READ,
    )
    leaderboard: LeaderboardConnection = field(
        board_resolvers.board_leaderboard, LEADERBOARD_ORDER, complexity=2 * READ
    )
    progress: BoardProgress = field(
        ballots.progress, "The viewer's progress through this board's pairs.", complexity=2 * READ
    )


@record_type(ballots.DrawnBallot, "A pair issued to one voter, with the only token that can vote on it.")
class Ballot:
    token: strawberry.ID = described("The token for `castVote`. Valid for this viewer only.")
    left: Contender = field(ballots.ballot_left, "The contender on the left.")
    right: Contender = field(ballots.ballot_right, "The contender on the right.")
    expires_at: datetime = described("When it expires. After that, draw again.")
    progress: BoardProgress = described("The voter's progress before this pair.")
    voter: strawberry.ID = described("The voter it was issued to. An editor can void all votes of this voter.")


@record_type(visits.Visit, "How a page of another site identifies its visitor, where the visitor's cookie is not sent.")
class Visit:
    token: str = described("Send it as `Authorization: Visitor <token>`. It is valid only with this page's origin.")
    expires_at: datetime = described(
        "When it expires. Start another visit with this token before then to stay the same visitor."
    )


BoardConnection = connection(Board, "Boards, by slug.", edge="A board in a list.")
ContenderConnection = connection(
    Contender, "Contenders in the order they joined.", edge="A contender in a list.", total_count=COUNTED
)
LeaderboardConnection = connection(
    LeaderboardRow,
    "Ranked contenders, best first.",
    name="Leaderboard",
    edge="A row of a leaderboard in a list.",
    total_count=COUNTED,
    results_hidden=(bool, "Whether the leaderboard is hidden from the viewer now: then it is empty."),
)
MatchupConnection = connection(
    Matchup,
    "Head-to-head records of pairs that were voted on; none while results are hidden.",
    edge="A head-to-head record in a list.",
)


@record_type(visibility.ShownRankChange, "A contender's rank by score, and what it would be without a suspect's votes.")
class RankChange:
    contender: Contender = field(visibility.changed_contender, "The contender.")
    rank: int = described("Its rank when the search ended.")
    without: int = described("What its rank would have been without these votes.")


@record_type(visibility.ShownSuspect, "A voter who votes as honest ones rarely do. For editors, who decide.")
class Suspect:
    voter: strawberry.ID = described("A pseudonym of this board, for `voidVoters`; it leads to no profile.")
    votes: int = described("Their votes that count, including ties.")
    reasons: list[str] = described("Why, the most telling first, with numbers of this voter only.")
    probability: float = described("At most how probable it is that an honest voter's votes are like this.")
    changes: list[RankChange] = described("Up to 20 contenders whose rank would be another without this voter.")


SuspectConnection = connection(
    Suspect,
    "The suspects of a board's last search, the least probable first; kept for 30 days.",
    edge="A suspect in a list.",
    computed_at=(datetime | None, "When the search ended; null without one in the last 30 days."),
    votes_seen=(int, "How many votes it saw that count."),
    expected_honest=(float, "At most how many honest voters are listed at this `atMost`, on average."),
)


# ── queries and subscriptions ──


@record_type(svg.PicturePreview, "A picture as it would be stored.")
class PicturePreview:
    svg: str = described("The sanitised SVG.")
    removed: list[str] = described("The elements and attributes that are not allowed, such as `<script>` and `onload`.")


@strawberry.type
class VotingQuery:
    board: Board | None = field(board_resolvers.board, "A board; null if there is none.", slug=BOARD_SLUG)
    # A board has many fields to decode: a page of them takes as long as five times as many contenders.
    boards: BoardConnection = field(board_resolvers.boards, "All boards, by slug.", complexity_of_each=4)
    contender: Contender | None = field(board_resolvers.contender, "A contender.", id="The contender's id.")
    contenders: ContenderConnection = field(
        board_resolvers.contenders,
        "A board's contenders in the order they joined, including retired ones.",
        board=BOARD_SLUG,
    )
    preview_contender: PicturePreview = field(
        board_resolvers.preview_contender,
        "What a contender's picture would become. For editors.",
        svg="The picture, an SVG of at most 48 KB.",
    )
    leaderboard: LeaderboardConnection = field(board_resolvers.leaderboard, LEADERBOARD_ORDER, board=BOARD_SLUG)
    matchup: Matchup | None = field(
        board_resolvers.matchup,
        "The head-to-head record of two contenders of one board, in either order.",
        left="One contender's id.",
        right="The other one's.",
    )
    suspects: SuspectConnection = field(
        suspects.suspects,
        "Voters who vote as honest ones rarely do, as the last `findSuspects` found them. For editors.",
        board=BOARD_SLUG,
        at_most="Only those with this probability or less: above 0, at most 0.1.",
    )
    matchups: MatchupConnection = field(
        board_resolvers.matchups,
        "Head-to-head records of pairs that were voted on: a board's, or one contender's. " + SHORT_PAGES,
        complexity=MATCHUPS_COMPLEXITY,
        complexity_of_each=MATCHUP_COMPLEXITY,
        board=BOARD_SLUG,
        contender="Only this contender's records, on any board; it is the left one in all of them.",
    )


@strawberry.type
class VotingSubscription:
    leaderboard_changed: list[LeaderboardRow] = subscription(
        board_resolvers.leaderboard_changed,
        "The first rows immediately, then again after each change, at most every two seconds. Nothing while results "
        "are hidden.",
        board=BOARD_SLUG,
        first="The number of rows from the top: 1 to 100, default 20.",
    )


# ── mutations ──


@record_type(
    ballots.VoteCast,
    "The verdict was counted. Repeating the same verdict counts nothing and returns the same winner; its `matchup` is "
    "the pair's record now, in which others may have voted meanwhile.",
)
class VoteCast:
    winner: Contender | None = field(ballots.winner, "The contender voted for; null for a tie or a skip.")
    matchup: Matchup | None = field(ballots.cast_matchup, "The pair's record now, this vote included." + HIDDEN)
    progress: BoardProgress = described("The voter's progress after this pair.")


@record_type(voiding.VoidedVotes, "The voter's votes were voided.")
class VoterVoided:
    votes_removed: int = described("The number of votes voided so far, without skips. A repeat voids none.")
    job: Job | None = described("The job, while it goes on: it voids the rest.")


@strawberry.type
class VotingMutation:
    create_board = mutation(
        board_resolvers.create_board,
        "Creates a board. For editors.",
        object_type("BoardCreated", "The board was created.", board=(Board, "The new board.")),
        show=visibility.show_board,
        input_description="A new board. For editors.",
        result_description="The new board, or why there is none.",
        slug="The name used in queries: 1 to 64 lowercase letters, digits and inner dashes. It never changes.",
        title="The name shown to people, 1 to 120 characters.",
        opens_at="The time from which it takes votes, at least 10 seconds ahead. Open at once if left out.",
        closes_at="The time from which it takes no more votes, at least 10 seconds ahead and later than `opensAt`.",
        electorate="Who may vote on it.",
        members_since="With MEMBERS: only those whose `joinedAt` is not later may vote.",
        results_visible="When its results are shown.",
    )
    update_board = mutation(
        board_resolvers.update_board,
        "Changes a board. New hours and a new electorate hold everywhere within 10 seconds, also for ballots drawn "
        "earlier; votes that were cast before stay. For editors.",
        object_type("BoardUpdated", "The board was changed.", board=(Board, "The board as it is now.")),
        show=visibility.show_board,
        input_description="Changes to a board. Omitted fields stay as they are. For editors.",
        result_description="The changed board, or why it was not changed.",
        slug=BOARD_SLUG,
        title="A new title, 1 to 120 characters.",
        opens_at="A new opening time, at least 10 seconds ahead; null if it is open from the beginning.",
        closes_at="A new closing time, at least 10 seconds ahead and later than `opensAt`; null if it stays open.",
        electorate="A new electorate.",
        members_since="With MEMBERS: only those whose `joinedAt` is not later may vote; null for all members.",
        results_visible="When its results are shown from now on; it holds everywhere within 10 seconds.",
        revision="The revision that the editor saw: with another one, nothing is changed (CONFLICT).",
    )
    add_contender = mutation(
        board_resolvers.add_contender,
        "Adds a contender to a board. For editors.",
        object_type("ContenderAdded", "The contender was added.", contender=(Contender, "The new contender.")),
        show=visibility.show_contender,
        input_description="A new contender. For editors.",
        result_description="The new contender, or why it was not added.",
        board="The board to add it to. `main` exists from the start.",
        name="1 to 80 characters, unique on this board ignoring case.",
        svg="Its picture, at most 48 KB. Scripts, handlers and outside references are removed.",
        description="A few lines about it, 1 to 500 characters.",
        link="A page about it, which starts with https://.",
        image_url="The address of a picture, which starts with https://, on one of the hosts in RINGSIDE_IMAGE_HOSTS.",
    )
    update_contender = mutation(
        board_resolvers.update_contender,
        "Changes a contender's name, texts or picture. For editors.",
        object_type(
            "ContenderUpdated", "The contender was changed.", contender=(Contender, "The contender as it is now.")
        ),
        show=visibility.show_contender,
        input_description="Changes to a contender. Omitted fields stay as they are. For editors.",
        result_description="The changed contender, or why it was not changed.",
        contender="The contender's id.",
        name="A new name, with the same rules as for a new contender.",
        svg="A new picture; null removes the picture.",
        description="A new description; null removes it.",
        link="A new link; null removes it.",
        image_url="The address of a new picture; null removes it.",
        revision="The revision that the editor saw: with another one, nothing is changed (CONFLICT).",
    )
    retire_contender = mutation(
        board_resolvers.retire_contender,
        "Retires a contender: it leaves the draws and the leaderboard. For editors.",
        object_type(
            "ContenderRetired", "The contender has retired.", contender=(Contender, "The contender; its records stay.")
        ),
        show=visibility.show_contender,
        input_description="A contender to retire. For editors.",
        result_description="The retired contender, or why it was not retired.",
        contender="The contender's id.",
    )
    restore_contender = mutation(
        board_resolvers.restore_contender,
        "Brings a retired contender back to the draws and the leaderboard, with all its records. For editors.",
        object_type(
            "ContenderRestored", "The contender is back.", contender=(Contender, "The contender, with all its records.")
        ),
        show=visibility.show_contender,
        input_description="A contender to restore. For editors.",
        result_description="The restored contender, or why it was not restored.",
        contender="The contender's id.",
    )
    start_visit = mutation(
        visits.start_visit,
        "Starts a visit, which lets a page on another site draw and vote. Only pages of the origins that the operator "
        "lists may start one.",
        Visit,
        input_description="A new visit. A repeat by the same visitor gets the same token on the same day, and another "
        "one on a later day, whatever its `idempotencyKey`.",
        result_description="The visit, or why there is none.",
    )
    draw_matchup = mutation(
        ballots.draw_matchup,
        "Draws the viewer's next pair. It returns the same pair until the viewer votes on it or skips it.",
        Ballot,
        terms=Terms(guests=True, contributes=False),
        input_description="The next pair of a board.",
        result_description="A ballot, or why there is none.",
        takes_key=False,
        board=BOARD_SLUG,
    )
    cast_vote = mutation(
        ballots.cast_vote,
        "Counts a verdict. It counts once, even if it is sent again.",
        VoteCast,
        terms=Terms(guests=True),
        input_description="A verdict on a drawn pair.",
        result_description="The counted vote, or why it was not counted.",
        takes_key=False,
        token="The ballot's token, unchanged.",  # noqa: S106 - a description
        verdict="The voter's verdict.",
    )
    void_voter = mutation(
        voiding.void_voter,
        "Voids one voter's votes on a board. For editors.",
        VoterVoided,
        input_description="A voter whose votes on a board are voided. For editors.",
        result_description="The number of voided votes, or why none was voided.",
        board=BOARD_SLUG,
        voter="A member's id, or the `voter` of a ballot or an exported vote.",
        same_address=(
            "Whether to also void all votes of the last seven days from the network addresses that this voter voted "
            "from."
        ),
    )
    find_suspects = mutation(
        suspects.find_suspects,
        "Begins to look for voters who vote as honest ones rarely do; nothing is voided. `suspects` shows them. While "
        "a search of the board runs, it is returned. For editors.",
        object_type("SuspectsSought", "Suspects are being looked for.", job=(Job, "The job that looks for them.")),
        input_description="A board to look at. For editors.",
        result_description="The job, or why there is none.",
        board=BOARD_SLUG,
    )
    void_voters = mutation(
        voiding.void_voters,
        "Begins to void all votes of several voters on a board. `restoreVoters` takes it back for a day. A repeat gets "
        "the same job, unless one of them has voted since. For editors.",
        object_type("VotersVoided", "The votes are being voided.", job=(Job, "The job that voids them.")),
        input_description="Voters whose votes on a board are voided. For editors.",
        result_description="The job, or why there is none.",
        board=BOARD_SLUG,
        voters="1 to 100 of them: a suspect's `voter`, a member's id, or the `voter` of a ballot or an exported vote.",
    )
    restore_voters = mutation(
        voiding.restore_voters,
        "Begins to restore the votes that a job of `voidVoters` has voided in the last 24 hours: they count as before, "
        "except those that were taken back or voided by `voidVoter` since. A repeat gets the same job. For editors.",
        object_type("VotersRestored", "The votes are being restored.", job=(Job, "The job that restores them.")),
        input_description="Votes to restore. For editors.",
        result_description="The job, or why there is none.",
        job="The job that voided them.",
    )
