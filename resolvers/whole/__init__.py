"""What knows all parts.

| module     | contents                                                               |
|------------|------------------------------------------------------------------------|
| erasing    | what each part does with one member's data: taking it back, erasing it |
| exporting  | writing down everything about a member                                 |
| importing  | what an editor pastes, by the stores of the commands                   |
| jobs       | what each kind of job does                                             |
| lag        | how far settling and jobs are behind                                   |
| mutations  | carries out mutations: idempotency, suspensions, the member's profile  |
| signing_in | the member whom a proof names, who may have been a guest               |
| node       | any object by its id                                                   |
| trials     | which comments hold rules would have held                              |
"""
