"""Comments on products.

| wanted                               | read or write                                           | requests         |
|--------------------------------------|---------------------------------------------------------|------------------|
| a page, newest first                 | PRODUCT#<p> COMMENT#<ulid>, descending                  | 1                |
| a page of some languages and ratings | gsi1 …#<lang>, gsi2 …#~#<r>, gsi3 …#<lang>#<r>: planner | 1-25, ≤ 2 rounds |
| one comment                          | COMMENT#<ulid>, then HELD#<ulid> and REPLY#<ulid>       | 1-2              |
| many comments                        | BatchGetItem of the same three, of missing ones twice   | 3 a hundred      |
| a moderator's queue, oldest first    | gsi1 MODERATION#<status>#<shard>, 8 shards merged       | 8 a page         |
| the same of reported comments        | gsi1 MODERATION#PUBLISHED, and the comments, 1-5 rounds | 2-10             |
| its length, up to 1,001              | gsi2 WAITING#<status>#<shard>, 8 shards merged          | 8-16             |
| the same of reported comments        | gsi1 MODERATION#PUBLISHED, and the comments             | 11 a thousand    |
| arrivals since a position            | COMMENT#, REPLY# and ARRIVAL#<ulid> between two         | 3-4              |
| post, edit, delete, moderate         | one transaction: comment, counts, pointer, receipt      | 1                |

| module       | contents                                                                        |
|--------------|---------------------------------------------------------------------------------|
| records      | the records; the lists of a member's comments and of the latest ones (pointers) |
| threads      | replies: their number, and the stubs of comments that are not to be seen        |
| pages        | one comment, pages by a filter, arrivals                                        |
| planner      | which partitions a page reads                                                   |
| changes      | posting, editing, deleting, moderating; reports                                 |
| helpful      | what members found helpful, and the order by it                                 |
| reviews      | one rated comment of each member on a product                                   |
| verified     | comments with a shop's proof of purchase: their second entry, and the proofs    |
| counts       | statistics, and the ranking of products by five-star comments                   |
| hold_rules   | which comments wait for a moderator; what a member has posted                   |
| notices      | replies of which authors are told by email                                      |
| transfer     | imports and exports                                                             |
| member_items | what comments keep of a member                                                  |

A published comment is a COMMENT item, a published reply a REPLY item. One that waits for a moderator or was rejected is
a HELD item: no reader's index and no count includes it. Every change goes through `change_comment`, which moves the
counts with the comment.
"""
