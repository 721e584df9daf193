"""Comments: one function per field.

| module      | contents                                                                                   |
|-------------|--------------------------------------------------------------------------------------------|
| rules       | validation of what clients send                                                            |
| visibility  | what a viewer sees of comments, one or a page of them, and counts                          |
| pages       | pages of a product's, a member's and the site's comments, and the stream of new ones       |
| writing     | posting, editing, deleting; challenges; the moderators' queue, reports and decisions       |
| marking     | which comments members find helpful                                                        |
| proofs      | a shop's proof that a member has bought a product                                          |
| judging     | the words and links of a text that hold rules ask for                                      |
| holding     | hold rules: setting, trying and applying them                                              |
| structured_data | a product's ratings as JSON-LD                                                         |
| notices     | which reply is told to whom by email                                                       |
| member_data | taking back and erasing a member's comments and reports                                    |
| counts      | statistics, the counts that pages are planned by, and products by their five-star comments |
| other_systems | importing what was written on another system                                             |
| claiming    | giving a member what was imported under their address                                      |
| transfer    | importing and exporting comments                                                           |
"""
