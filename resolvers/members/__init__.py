"""What moderators and members do with a member as a whole; and in `confirmations`, how an address is confirmed.

| module        | contents                                         |
|---------------|--------------------------------------------------|
| visibility    | what a viewer sees of members                    |
| confirmations | emails that confirm an address by a link         |
| suspensions   | who may not write, known to every process        |
| erasing       | erasing a member                                 |
| exporting     | writing down everything about a member           |
| taking_back   | taking back a member's contributions             |
"""
