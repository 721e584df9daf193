"""Pick'em: one function per field.

| module       | contents                                                                                      |
|--------------|-----------------------------------------------------------------------------------------------|
| rules        | tie-breaks, codes of leagues, and validation of what clients send                             |
| visibility   | what a viewer sees of events, predictions, standings and leagues                              |
| cache        | what a process remembers of cards, pick counts and leagues; it also locks due events          |
| events       | events, their cards, and how they ended                                                       |
| predictions  | predictions, and submitting them                                                              |
| scoring      | what a prediction is worth; giving and taking back points: one job of an event at a time      |
| member_data  | taking back and erasing a member's predictions, and erasing their places in leagues           |
| standings    | seasons and ranks; standings and events of a league                                           |
| leagues      | who belongs to a league                                                                       |
| season_files | cards and results as a JSON file                                                              |
"""
