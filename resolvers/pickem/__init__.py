"""Pick'em: one function per field.

| module       | contents                                                                                       |
|--------------|------------------------------------------------------------------------------------------------|
| rules        | what a prediction is worth, and validation of what clients send                                |
| tie_breaks   | the number that an event may ask for, and how near a guess is to it                            |
| visibility   | what a viewer sees of events, predictions, standings and leagues                               |
| cache        | what a process remembers: cards by version, pick counts, histograms; it also locks due events  |
| events       | events and their cards                                                                         |
| predictions  | predictions, and submitting them                                                               |
| results      | recording how an event ended                                                                   |
| event_jobs   | the jobs of an event, one at a time                                                            |
| scoring      | from results to points                                                                         |
| crediting    | giving every prediction of an event its share                                                  |
| unscoring    | taking back all points of an event                                                             |
| removing     | removing a member's predictions, and counting their events again                               |
| member_data  | taking back and erasing a member's predictions, and erasing their places in leagues            |
| standings    | seasons and ranks                                                                              |
| leagues      | who belongs to a league                                                                        |
| league_codes | codes to join by, and the limit on trying them                                                 |
| league_pages | standings and events of a league                                                               |
| league_cache | what a process remembers of leagues                                                            |
| season_files | cards and results as a JSON file                                                               |
"""
