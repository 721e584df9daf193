"""Voting: one function per field.

| module        | contents                                                                                       |
|---------------|------------------------------------------------------------------------------------------------|
| visibility    | what a viewer sees of boards and their results                                                 |
| rules         | who may vote, and when: electorate and hours                                                   |
| boards        | boards, contenders, the leaderboard, head-to-head records; what editors change                 |
| ballots       | drawing and voting: progress, and where votes come from                                        |
| visits        | how the pages of other sites identify their visitors                                           |
| continuing    | what a visitor has begun goes on as the member's who signs in                                  |
| settling      | moving tallies to results while votes come in, and what a process remembers of boards          |
| voiding       | taking back a voter's votes                                                                    |
| member_data   | taking back and erasing a member's votes                                                       |
| suspects      | looking for voters who vote as honest ones rarely do                                           |
| suspect_search | the process that does so                                                                     |
| kept_votes    | the verdicts of many voters in little memory, and how honest voters of a board judge           |
| pushes        | which contenders groups push, and which voters vote as such a group                            |
| suspicion     | which votes are suspicious, and what ranks would be without them                               |
| transfer      | importing contenders, exporting votes                                                          |
| svg           | sanitising pictures                                                                            |
| bradley_terry | strengths fitted to head-to-head records                                                       |
"""
