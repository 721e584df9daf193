"""Pick'em: events with their cards, the gates that accept predictions, standings.

| wanted                                 | read or write                                              | requests    |
|----------------------------------------|------------------------------------------------------------|-------------|
| events, newest first                   | gsi1 SCHEDULE                                              | 1 a page    |
| events of one state                    | gsi2 SCHEDULE#<state>; for LOCKED also due UPCOMING ones   | 1-2 a page  |
| the next event to lock                 | gsi2 SCHEDULE#UPCOMING, from now on                        | 1           |
| seasons, or a season's events          | SEASONS, all or <season>#…, consistent: 0.1 KB an event    | 1 a 1,000   |
| all events, missing none               | the first; Query CREATED#EVENT; then the next              | 1 more      |
| one event, the events of a page        | BatchGetItem, consistent                                   | 1 a hundred |
| an event's card                        | EVENT#<id> MATCH#…, consistent; cached for a minute        | 1 a minute  |
| picks per team                         | BatchGetItem of the gates, once it is locked; then cached  | 1 an event  |
| a new event                            | Put CREATED#EVENT beside a transaction: 48 gates; then     | 3           |
|                                        | another one: event, matches, season's entry                |             |
| a card with another match, order, …    | transaction: event (version, not begun), match             | 1           |
| a match with fewer teams               | the same, and 48 gates (not picked)                        | 1           |
| a card without a match                 | the same as another match; 48 gates, each if older         | 1 + 48      |
| an earlier start, a cancellation       | Put of the event (version); 48 gates, each if older        | 1 + 48      |
| a lock                                 | the same; Put of the event                                 | 1 + 48 + 1  |
| any other change of an event           | Put of the event (version); of the season's entry if moved | 1           |
| who needs no reminder before a lock    | BatchGetItem of reminders and predictions, consistent      | 2 a hundred |
| one prediction                         | GetItem EVENT#<id>#<shard> USER#<user>, consistent         | 1           |
| a submission                           | transaction: gate (version), prediction (as read)          | 1           |
| predictions before scoring             | EVENT#<id>#<shard>, 16 shards merged                       | 16 a page   |
| ranked predictions                     | gsi2 EVENT#<id>#RANKED#<shard>, 4 shards merged            | 4 a page    |
| predictions to score                   | EVENT#<id>#<shard>, consistent, in turns                   | 4 a hundred |
| a scoring or an unscoring begins       | transaction: event (version), job                          | 1           |
| it ends                                | Put of the event (version)                                 | 1           |
| 100 scored or unscored predictions     | BatchGetItem of their standings; for each 25 a             | 5           |
|                                        | transaction: predictions and standings (as read)           |             |
| standings of a season                  | gsi2 RANKING#<season>#<shard>, 4 shards merged             | 4 a page    |
| a count of a season's points           | STANDINGS#<season>#<shard>, 16 shards, consistent          | 16, 1 a 1,000 |
| a rank among all                       | STANDINGS#<season> RANKS; its histogram, cached            | 1, then 1   |
| a member's standings and predictions   | gsi1 USER#<user>                                           | 1 a page    |

| module       | contents                                                                          |
|--------------|-----------------------------------------------------------------------------------|
| events       | events, the matches on their cards, the starts of seasons' events; the gates that |
|              | predictions pass, and the picks counted at them                                   |
| predictions  | submitting and reading predictions; seeding an event; reminders before the lock   |
| standings    | standings, the histograms for ranks, and crediting predictions                    |
| leagues      | leagues and their members; the access patterns are there                          |
| member_items | what pick'em keeps of a member, and taking the member out of it                   |

What many members write at the same time is spread over 16 shards (`people.member_shard`) or 48 gates. Rankings are
spread over 4, because every page reads each shard once.
"""
