"""Boards and contenders, ballots and votes, tallies and what is settled from them.

| wanted                             | read or write                                               | requests |
|------------------------------------|-------------------------------------------------------------|----------|
| a board, and who votes on it now   | Query BOARD#<slug>, BOARD…                                  | 1        |
| all boards                         | gsi1 BOARDS, ascending                                      | 1 a page |
| contenders                         | Get or BatchGet BOARD#<slug> CONTENDER#<ordinal>            | 1        |
| all contenders in order of joining | Query BOARD#<slug>, CONTENDER#…                             | 1 a page |
| a board's best contenders          | gsi1 LEADERBOARD#<slug>, ascending                          | 1 a page |
| pictures                           | BatchGet BOARD#<slug> SVG#<ordinal>                         | 1        |
| add, rename, retire a contender    | a transaction with the board, its name and its picture      | 2        |
| one voter's latest vote            | VOTER#<voter>#<slug>, newest, consistent                    | 1        |
| cast a vote                        | a transaction: the vote if absent, both contenders, the pair | 1       |
| a head-to-head record              | BatchGet TALLY#<slug>#<shard> PAIR#<low>#<high>             | 1        |
| all head-to-head records           | Query TALLY#<slug>#<shard>, PAIR#…, merged                  | shards   |
| settle                             | Query each shard's contenders; write the rows that changed  | shards + changed |
| void a voter                       | per vote a transaction of 4                                 | votes    |

What is published of orders: the leaderboard by score, then by name without regard to case, then by who joined first.
"""

from datastore.voting.ballots import Ballot, TokenExpired, TokenSpent, TokenUnknown
from datastore.voting.boards import (
    BOARD,
    MAIN,
    USUAL_RATE,
    Board,
    BoardNow,
    all_boards,
    board_now,
    boards_page,
    create_board,
    is_slug,
)
from datastore.voting.contenders import (
    CONTENDER,
    NAME,
    PICTURE,
    Contender,
    ContenderChange,
    Name,
    Picture,
    add_contender,
    change_contender,
    contender,
    contenders_at,
    contenders_page,
    contenders_request,
    folded,
    leaderboard_request,
    leaderboard_slice,
    pictures,
    retire_contender,
    roster,
)
from datastore.voting.settling import Roster, clear_dirty, mark_dirty, read_roster, settle
from datastore.voting.tallies import (
    PAIR,
    TALLY,
    PairTally,
    Tally,
    all_pairs,
    ensure_spread,
    pair_records,
    pairs_of_contender,
    pairs_of_contender_request,
    pairs_page,
    pairs_request,
    raise_spread,
    reshard,
    set_rate,
    shard_of,
    shards_for,
)
from datastore.voting.votes import VOTE, Outcome, Vote, all_votes, cast, latest_vote, void_votes, vote_on

__all__ = [
    "BOARD",
    "CONTENDER",
    "MAIN",
    "NAME",
    "PAIR",
    "PICTURE",
    "TALLY",
    "USUAL_RATE",
    "VOTE",
    "Ballot",
    "Board",
    "BoardNow",
    "Contender",
    "ContenderChange",
    "Name",
    "Outcome",
    "PairTally",
    "Picture",
    "Roster",
    "Tally",
    "TokenExpired",
    "TokenSpent",
    "TokenUnknown",
    "Vote",
    "add_contender",
    "all_boards",
    "all_pairs",
    "all_votes",
    "board_now",
    "boards_page",
    "cast",
    "change_contender",
    "clear_dirty",
    "contender",
    "contenders_at",
    "contenders_page",
    "contenders_request",
    "create_board",
    "ensure_spread",
    "folded",
    "is_slug",
    "latest_vote",
    "leaderboard_request",
    "leaderboard_slice",
    "mark_dirty",
    "pair_records",
    "pairs_of_contender",
    "pairs_of_contender_request",
    "pairs_page",
    "pairs_request",
    "pictures",
    "raise_spread",
    "read_roster",
    "reshard",
    "retire_contender",
    "roster",
    "set_rate",
    "settle",
    "shard_of",
    "shards_for",
    "void_votes",
    "vote_on",
]
