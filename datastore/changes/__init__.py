"""What is written with every change, in its own transaction: the receipt, and the journal's record.

| module       | contents                                                              |
|--------------|-----------------------------------------------------------------------|
| unit_of_work | a request's changes and their receipt; objects that are about to be   |
| occurrences  | the journal's records, and its writes for a change                    |
| revisions    | how often each thing was changed that every process keeps whole       |
"""
