"""What is written with every change, in its own transaction: the receipt, the journal's record, the check of erasure.

| module       | contents                                                              |
|--------------|-----------------------------------------------------------------------|
| unit_of_work | a request's changes and their receipt; new objects and erased members |
| occurrences  | the journal's records, and its writes for a change                    |
"""
