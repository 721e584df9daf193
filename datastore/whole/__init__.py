"""The table as a whole: what belongs to no part, and what knows all of them.

| module        | contents                                                                   |
|---------------|----------------------------------------------------------------------------|
| table         | the whole table as rows, to move it                                        |
| layout        | the layout of the table's items; which parts of the demo data are complete |
| named_objects | whether what the journal names exists                                      |
"""
