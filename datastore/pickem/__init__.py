"""Pick'em: events with their cards, predictions behind gates, standings.

| wanted                                 | read or write                                              | requests    |
|----------------------------------------|------------------------------------------------------------|-------------|
| events, newest first                   | gsi1 EVENTS                                                | 1 a page    |
| events of one state                    | gsi2 EVENTS#<state>; LOCKED also UPCOMING ones that are due | 1-2 a page  |
| one event, the events behind a page    | BatchGetItem, consistent                                   | 1 a hundred |
| an event's card                        | EVENT#<id> MATCH#…, consistent; kept by the event's version | 1 a version |
| picks per team                         | EVENT#<id> GATE#…, once it is locked; final, so kept       | 1 an event  |
| a new event                            | transaction: event, 16 gates                               | 1           |
| a change of the card                   | transaction: event (version, not begun), match; gates      | 1           |
| another start, a lock, a cancellation  | transaction: event (version), 16 gates                     | 1           |
| a result                               | Put of the event (version)                                 | 1           |
| one prediction                         | GetItem EVENT#<id>#<shard> USER#<user>, consistent         | 1           |
| a submission                           | transaction: gate (open, in time, card), prediction (version) | 1           |
| predictions before scoring             | EVENT#<id>#<shard>, 16 shards merged                       | 16 a page   |
| ranked predictions                     | gsi2 EVENT#<id>#RANKED#<lane>, 4 shards merged             | 4 a page    |
| what is left to score                  | EVENT#<id>#<shard>, consistent                             | 1 a hundred |
| a scored prediction                    | standing (version), then prediction (generation)           | 2           |
| standings of a season                  | gsi2 STANDINGS#<season>#<lane>, 4 shards merged            | 4 a page    |
| a rank among all                       | STANDINGS#<season> SEASON; its histogram, kept             | 1, then 1   |
| a member's standings and predictions   | gsi1 USER#<user>                                           | 1 a page    |

What is written by many at once lies in 16 shards (people.shard_of); what is read as one list in 4, because every
page asks each lane once.
"""
