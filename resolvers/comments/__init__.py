"""Comments: one function per field.

| module      | contents                                                            |
|-------------|---------------------------------------------------------------------|
| rules       | validation of what clients send                                     |
| languages   | language tags                                                       |
| visibility  | what a viewer sees of comments, one or a page of them, and counts   |
| pages       | pages of a product's comments                                       |
| latest      | a member's comments, and the latest ones of the whole site          |
| arrivals    | the stream of comments as they become visible                       |
| writing     | posting, editing and deleting                                       |
| moderation  | the moderators' queue, reports and decisions                        |
| member_data | taking back and erasing a member's comments and reports             |
| counts      | statistics, and the counts that pages are planned by                |
| transfer    | importing and exporting comments                                    |
| leaders     | products by their five-star comments, kept up to date               |
"""
