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
| add a contender                    | Query the board; a transaction: board, contender, name, …   | 2        |
| change, retire, restore one        | the contender; its details or the board; a transaction      | 3        |
| one voter's latest vote            | VOTER#<voter>#<slug>, newest, consistent                    | 1        |
| a vote by its number               | Get VOTER#<voter>#<slug> VOTE#<number>, consistent          | 1        |
| a voter's pairs in this cycle      | the same key, newest first, until the cycle before          | 1 a 1,000 |
| cast a vote                        | a transaction: the vote if absent, both contenders, the pair | 1       |
| a head-to-head record              | BatchGet TALLY#<slug>#<shard> PAIR#<low>#<high>             | 1        |
| all head-to-head records           | Query TALLY#<slug>#<shard>, PAIR#…, merged                  | shards   |
| a contender's records: later opponents | Query TALLY#<slug>#<shard>, PAIR#<ordinal>#…, merged    | shards   |
| earlier opponents, in shards with its votes | BatchGet its tallies; 160 keys PAIR#<low>#<ordinal> a page | 1; 3 |
| settle a board                     | its lease; Query each shard, and its results; a transaction | 3 + shards |
| void all votes from an address     | its voters, their origins and votes; a transaction per vote | 16, voters, votes |

| module       | contents                                                                                |
|--------------|-----------------------------------------------------------------------------------------|
| boards       | boards, dirty marks, and the number of shards                                           |
| contenders   | contenders, their names, details and pictures; results                                  |
| editing      | what editors change; seeding                                                            |
| pair_walk    | the eligible pairs, and a random order of all of them, in a few bytes                   |
| votes        | ballots, votes, tallies and head-to-head records                                        |
| continuing   | going on with a visitor's walk as a member                                              |
| settling     | from tallies to results                                                                 |
| voiding      | voiding votes, and the addresses that they came from                                    |
| suspects     | voters whom a search has found                                                          |
| member_items | what voting keeps of a member, and erasing a voter                                      |

The leaderboard is ordered by score, then by name, character by character and ignoring case. A name comes after longer
names that continue it with a space, `!` or `"`, which sort before the `#` that ends it in the key.
"""
