"""What is written with every change, in its own transaction: the receipt, the journal's record, the check of erasure.

| module       | contents                                                                     |
|--------------|------------------------------------------------------------------------------|
| unit_of_work | a request's changes and their receipt                                        |
| recording    | the journal's writes for a change                                            |
| occurrences  | the records of the journal: occurrences, webhooks, deliveries                |
| kinds        | what can occur                                                               |
| tombstones   | the ids of erased members, for or about whom nothing more is written         |
| created      | recently created objects, which an index may not show yet                    |
"""
