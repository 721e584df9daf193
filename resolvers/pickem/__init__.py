"""Pick'em: one function per field.

| module       | contents                                                                                       |
|--------------|------------------------------------------------------------------------------------------------|
| rules        | what a prediction is worth, and validation of what clients send                                |
| views        | records as fields show them: a match on its card, a prediction with its event, a ranked standing |
| cache        | what a process remembers: cards by version, pick counts, histograms; it also locks due events  |
| events       | events and their cards                                                                         |
| predictions  | submitting predictions, and who may see their picks                                            |
| standings    | seasons and ranks                                                                              |
| scoring      | from results to points                                                                         |
| season_files | cards and results as a JSON file                                                               |
"""
