"""Voting: one function per field.

| module        | contents                                                             |
|---------------|----------------------------------------------------------------------|
| visibility    | what a viewer sees of boards and their results                       |
| boards        | boards, contenders, the leaderboard, head-to-head records            |
| ballots       | drawing and voting                                                   |
| editing       | what editors change                                                  |
| voiding       | taking back a voter's votes                                          |
| member_data   | taking back and erasing a member's votes                             |
| visits        | how pages of other sites identify their visitors                     |
| hours         | when a board takes votes                                             |
| texts         | rules for names, titles and descriptions                             |
| transfer      | importing contenders, exporting votes                                |
| svg           | sanitising pictures                                                  |
| svg_styles    | the styles of a picture                                              |
| bradley_terry | strengths fitted to head-to-head records                             |
| board_cache   | what a process remembers of boards                                   |
| board_settler | moving tallies to results while votes come in                        |
| walk_counts   | a voter's progress, counted again after contenders retire or return  |
| origins       | the tags that votes have for their network address                   |
"""
