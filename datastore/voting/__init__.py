"""Boards, contenders, ballots, votes, and the tallies that the leaderboard is settled from.

| wanted                             | read or write                                               | requests |
|------------------------------------|-------------------------------------------------------------|----------|
| a board and its dirty marks        | Query BOARD#<slug>, BOARD…, 64 items                        | 1        |
| all boards                         | gsi1 BOARDS, ascending                                      | 1 a page |
| a page of them, settled            | the same; then each board and its dirty marks, at once      | 1 a board more |
| every slug, missing none           | gsi1 BOARDS, and Query CREATED#BOARD, consistent            | 1 more   |
| contenders                         | Get or BatchGet CONTENDERS#<slug>#<block> CONTENDER#<ordinal> | 1        |
| all contenders in joining order    | Query CONTENDERS#<slug>#<block>, CONTENDER#…                | 1 a page |
| results of contenders              | BatchGet RESULTS#<slug> BLOCK#<block>, consistent           | 1        |
| details; pictures                  | BatchGet BOARD#<slug> DETAILS#<ordinal>; SVG#<ordinal>      | 1        |
| change a board                     | Query the board; update it if unchanged                     | 2        |
| add, change, retire, restore a contender | a transaction: board, contender, name, details, picture | 2 |
| one voter's latest vote            | VOTER#<voter>#<slug>, newest, consistent                    | 1        |
| a vote by its number               | Get VOTER#<voter>#<slug> VOTE#<number>, consistent          | 1        |
| a voter's pairs in this cycle      | the same key, newest first, until the cycle before          | 1 a MB   |
| cast a vote                        | a transaction: the vote if absent, both contenders, the pair | 1       |
| a head-to-head record              | BatchGet TALLY#<slug>#<shard> PAIR#<low>#<high>             | 1        |
| all head-to-head records           | Query TALLY#<slug>#<shard>, PAIR#…, merged                  | shards   |
| a contender's records: later opponents | Query TALLY#<slug>#<shard>, PAIR#<ordinal>#…, merged    | shards   |
| earlier opponents, in shards with its votes | BatchGet its tallies; 160 keys PAIR#<low>#<ordinal> a page | 1; 3 |
| settle a board                     | its lease; Query each shard, and its results; a transaction | 2 + shards |
| void a voter's votes               | a transaction of 4 per vote                                 | votes    |
| limits of an address; its voters   | see `addresses`                                             | 1; 16    |
| void all votes from an address     | its voters, their origins and votes; a transaction per vote | 16, voters, votes |

The leaderboard is ordered by score, then by name, character by character and ignoring case. A name comes after longer
names that continue it with a space, `!` or `"`, which sort before the `#` that ends it in the key.
"""

from datastore.voting.ballots import Ballot, TokenExpired, TokenSpent, TokenUnknown, Verdict
from datastore.voting.boards import (
    BOARD,
    DEFAULT_RATE,
    MAIN,
    Board,
    BoardWithMarks,
    DirtyMark,
    all_boards,
    board_not_found,
    create_board,
    delete_mark,
    ensure_shards_are_read,
    every_slug,
    existing_boards,
    is_dead,
    is_slug,
    put_mark,
    read_board_with_marks,
    read_boards_page,
    reshard,
)
from datastore.voting.contenders import (
    CONTENDER,
    NAME,
    PICTURE,
    RESULTS,
    BlockKey,
    BoardResults,
    Contender,
    ContenderKey,
    CountedContender,
    Counts,
    Details,
    Name,
    Picture,
    ResultsBlock,
    all_contenders,
    contenders_request,
    counted,
    folded,
    leaderboard_request,
    read_contender,
    read_contenders,
    read_contenders_page,
    read_details,
    read_known_names,
    read_pictures,
    read_results_blocks,
)
from datastore.voting.editing import (
    ContenderChange,
    add_contender,
    change_board,
    change_contender,
    restore_contender,
    retire_contender,
)
from datastore.voting.settling import begin_settling, settle, settling_age
from datastore.voting.voiding import remember_origin, void_votes, void_votes_of_addresses
from datastore.voting.votes import (
    PAIR,
    TALLY,
    VOTE,
    PairTally,
    PairVerdict,
    Tally,
    Vote,
    all_votes,
    cast,
    contender_pairs_request,
    pairs_request,
    read_contender_pairs_page,
    read_latest_vote,
    read_pair_record,
    read_pair_tallies,
    read_pairs_page,
    read_seen_pairs,
    read_vote,
    vote_on,
    with_vote,
)

__all__ = [
    "BOARD",
    "CONTENDER",
    "DEFAULT_RATE",
    "MAIN",
    "NAME",
    "PAIR",
    "PICTURE",
    "RESULTS",
    "TALLY",
    "VOTE",
    "Ballot",
    "BlockKey",
    "Board",
    "BoardResults",
    "BoardWithMarks",
    "Contender",
    "ContenderChange",
    "ContenderKey",
    "CountedContender",
    "Counts",
    "Details",
    "DirtyMark",
    "Name",
    "PairTally",
    "PairVerdict",
    "Picture",
    "ResultsBlock",
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
    "begin_settling",
    "board_not_found",
    "cast",
    "change_board",
    "change_contender",
    "contender_pairs_request",
    "contenders_request",
    "counted",
    "create_board",
    "delete_mark",
    "ensure_shards_are_read",
    "every_slug",
    "existing_boards",
    "folded",
    "is_dead",
    "is_slug",
    "leaderboard_request",
    "pairs_request",
    "put_mark",
    "read_board_with_marks",
    "read_boards_page",
    "read_contender",
    "read_contender_pairs_page",
    "read_contenders",
    "read_contenders_page",
    "read_details",
    "read_known_names",
    "read_latest_vote",
    "read_pair_record",
    "read_pair_tallies",
    "read_pairs_page",
    "read_pictures",
    "read_results_blocks",
    "read_seen_pairs",
    "read_vote",
    "remember_origin",
    "reshard",
    "restore_contender",
    "retire_contender",
    "settle",
    "settling_age",
    "void_votes",
    "void_votes_of_addresses",
    "vote_on",
    "with_vote",
]
