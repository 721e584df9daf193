"""Boards, contenders, ballots, votes, and the tallies that the leaderboard is settled from.

| wanted                             | read or write                                               | requests |
|------------------------------------|-------------------------------------------------------------|----------|
| a board and its dirty marks        | Query BOARD#<slug>, BOARD…                                  | 1        |
| all boards                         | gsi1 BOARDS, ascending                                      | 1 a page |
| contenders                         | Get or BatchGet BOARD#<slug> CONTENDER#<ordinal>            | 1        |
| all contenders in joining order    | Query BOARD#<slug>, CONTENDER#…                             | 1 a page |
| a board's best contenders          | gsi1 LEADERBOARD#<slug>, ascending                          | 1 a page |
| pictures                           | BatchGet BOARD#<slug> SVG#<ordinal>                         | 1        |
| add, rename, retire a contender    | a transaction with the board, its name and its picture      | 2        |
| one voter's latest vote            | VOTER#<voter>#<slug>, newest, consistent                    | 1        |
| cast a vote                        | a transaction: the vote if absent, both contenders, the pair | 1       |
| a head-to-head record              | BatchGet TALLY#<slug>#<shard> PAIR#<low>#<high>             | 1        |
| all head-to-head records           | Query TALLY#<slug>#<shard>, PAIR#…, merged                  | shards   |
| settle a board                     | Query each shard's contenders; write the rows that changed  | shards + changed |
| void a voter's votes               | a transaction of 4 per vote                                 | votes    |

The leaderboard is ordered by score, then by name (ignoring case), then by joining order.
"""

from datastore.voting.ballots import (
    Ballot,
    TokenExpired,
    TokenSpent,
    TokenUnknown,
    Verdict,
)
from datastore.voting.boards import (
    BOARD,
    DEFAULT_RATE,
    MAIN,
    Board,
    BoardWithMarks,
    all_boards,
    clear_dirty,
    create_board,
    is_slug,
    mark_dirty,
    read_board_with_marks,
    read_boards_page,
)
from datastore.voting.contenders import (
    CONTENDER,
    NAME,
    PICTURE,
    Contender,
    ContenderChange,
    ContenderKey,
    Name,
    Picture,
    add_contender,
    all_contenders,
    change_contender,
    contenders_request,
    folded,
    leaderboard_request,
    read_contender,
    read_contenders,
    read_contenders_page,
    read_leaderboard_slice,
    read_pictures,
    retire_contender,
)
from datastore.voting.resharding import (
    ensure_shards_are_read,
    reshard,
)
from datastore.voting.settling import (
    BoardRows,
    read_board_rows,
    settle,
)
from datastore.voting.tallies import (
    PAIR,
    TALLY,
    PairTally,
    Tally,
    contender_pairs_request,
    pairs_request,
    read_contender_pairs_page,
    read_pair_records,
    read_pair_tallies,
    read_pairs_page,
)
from datastore.voting.votes import (
    VOTE,
    PairVerdict,
    Vote,
    all_votes,
    cast,
    read_latest_vote,
    void_votes,
    vote_on,
)

__all__ = [
    "BOARD",
    "CONTENDER",
    "DEFAULT_RATE",
    "MAIN",
    "NAME",
    "PAIR",
    "PICTURE",
    "TALLY",
    "VOTE",
    "Ballot",
    "Board",
    "BoardRows",
    "BoardWithMarks",
    "Contender",
    "ContenderChange",
    "ContenderKey",
    "Name",
    "PairTally",
    "PairVerdict",
    "Picture",
    "Tally",
    "TokenExpired",
    "TokenSpent",
    "TokenUnknown",
    "Verdict",
    "Vote",
    "add_contender",
    "all_boards",
    "all_contenders",
    "all_votes",
    "cast",
    "change_contender",
    "clear_dirty",
    "contender_pairs_request",
    "contenders_request",
    "create_board",
    "ensure_shards_are_read",
    "folded",
    "is_slug",
    "leaderboard_request",
    "mark_dirty",
    "pairs_request",
    "read_board_rows",
    "read_board_with_marks",
    "read_boards_page",
    "read_contender",
    "read_contender_pairs_page",
    "read_contenders",
    "read_contenders_page",
    "read_latest_vote",
    "read_leaderboard_slice",
    "read_pair_records",
    "read_pair_tallies",
    "read_pairs_page",
    "read_pictures",
    "reshard",
    "retire_contender",
    "settle",
    "void_votes",
    "vote_on",
]
