"""Word lists, daily words, subscriptions, and members' quizzes and sentences.

| wanted                                  | read or write                                           | requests        |
|-----------------------------------------|---------------------------------------------------------|-----------------|
| one list; the lists of a page           | GetItem LIST#<id>; BatchGetItem                         | 1; 1 a hundred  |
| public and a member's own lists, by name| gsi1 LISTS#PUBLIC and LISTS#OF-<user>, merged           | 2 a page, mostly |
| a list's words                          | LIST#<id>, WORD#                                        | 1 a page        |
| a new or changed list                   | transaction: list, the owner's count of private ones or | 1; 2            |
|                                         | the public name                                         |                 |
| the public list of a name               | GetItem LISTNAME#<hash>, GetItem LIST#<id>              | 2               |
| a corrected or removed word             | GetItem or BatchGetItem, transaction: word, list        | 2               |
| new words                               | GetItem, transaction: words, the list's count; above 80 | 2; 3, 1 per 80  |
|                                         | the batch named before, transactions of words           |                 |
| the daily word of a list and date       | GetItem LIST#<id> DAILY#<date>                          | 1               |
| the same, drawn                         | BatchGetItem, GetItem, transaction: day, order, word;   | 3, once a day   |
|                                         | of a list with removed words also LIST#<id>, REMOVED#   | 1 a page        |
| all daily words of a date               | gsi1 DAILY#<date>#PUBLIC and #OF-<user>                 | 2               |
| a list's past daily words               | LIST#<id>, DAILY# newest first                          | 1 a page        |
| subscribe, unsubscribe                  | BatchGetItem, transaction: both character sets,         | 2               |
|                                         | the list's count                                        |                 |
| a confirmed address subscribes          | GetItem, BatchGetItem, transaction: profile, used link, | 3               |
|                                         | the subscription as above                               |                 |
| a claimed subscription                  | BatchGetItem twice, transaction: both members'          | 3               |
| the number of a list's subscribers      | LIST#<id>, SUBSCRIBERS#, 16 shards                      | 1               |
| all members with active subscriptions   | gsi1 USERS#<shard>, 16 shards, to the end               | 1 a page        |
| a profile screen                        | USER#<id>, DAY#<since> to SUBSCRIPTION#                 | 1               |
| a quiz result, a sentence               | BatchGetItem (zone, days), transaction: it, days        | 2               |
| an amended sentence                     | GetItem, UpdateItem                                     | 2               |
| a day's leaderboard                     | gsi1 DAY#<date>#<shard>, 16 shards, cached              | 16 every 2 s    |
| the cards that are due                  | USER#<id>, CARD#<due>, consistent                       | 1 a page        |
| a reviewed word                         | GetItem, transaction: card, its old and new place       | 2               |
| a quiz that is asked                    | BatchGetItem (list, words), BatchGetItem (cards) at the | 3               |
|                                         | same time, Put USER#<id> ASKED#<quiz>                   |                 |
| the same, if few random words fit       | also LIST#<id>, WORD#, consistent: 300 words, then by   | 1 to 10 more,   |
|                                         | the 1,000, 9,300 in all; BatchGetItem (cards)           | up to 3 more    |
| a quiz that is answered                 | BatchGetItem, transaction: quiz, result, days, cards;   | 2               |
|                                         | with more than 27 cards then their places in the queue  | and 2 a 30, 1   |
| what decides about a member's mail      | GetItem USER#<id> PROFILE; USER#<id>, SUBSCRIPTION#     | 2               |
| a member's mail of a date               | Put (record), Update (sent)                             | 2               |
| who claimed an address's record         | gsi1 CLAIMED#<record>                                   | 1               |
| a record's mails count as a member's    | BatchGetItem, Put of each                               | 1 and 1 each    |
| who was sent a date's mail              | MAILING#<date>, SENT#<shard>                            | 1 a page        |

| module        | contents                                                                              |
|---------------|---------------------------------------------------------------------------------------|
| lists         | word lists: created, changed, published, deleted                                      |
| words         | the words of a list                                                                   |
| daily         | daily words                                                                           |
| subscriptions | subscriptions of members and of addresses; daily emails                               |
| learning      | quiz results, sentences, active days                                                  |
| quizzes       | members' cards, and quizzes that the service sets                                     |
| member_items  | what vocabulary keeps of a member, removing results, reads for the audit              |
"""
