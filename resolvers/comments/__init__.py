"""Comments: one function per field.

| module      | contents                                                            |
|-------------|---------------------------------------------------------------------|
| rules       | validation of what clients send                                     |
| languages   | language tags                                                       |
| access      | who may see and change a comment; loading one for a viewer          |
| pages       | one comment, and pages of a product's comments                      |
| latest      | a member's comments, and the latest ones of the whole site          |
| arrivals    | the stream of comments as they become visible                       |
| writing     | posting, editing and deleting                                       |
| moderation  | the moderators' queue, reports and decisions                        |
| withdrawing | rejecting what a member has posted since a time                     |
| counts      | statistics, and the counts that pages are planned by                |
| transfer    | importing and exporting comments                                    |
| leaders     | products by their five-star comments, kept up to date               |
"""
