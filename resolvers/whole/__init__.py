"""What knows all parts.

| module      | contents                                                               |
|-------------|------------------------------------------------------------------------|
| parts       | what each part does with one member's data                             |
| jobs        | what each kind of job does                                             |
| erasing     | erasing a member                                                       |
| exporting   | writing down everything about a member                                 |
| taking_back | taking back a member's contributions                                   |
| mutations   | carries out mutations: idempotency, suspensions, the member's profile  |
| node        | any object by its id                                                   |
"""
