"""The journal and webhooks: one function per field.

| module      | contents                                    |
|-------------|---------------------------------------------|
| occurrences | the journal as moderators read it           |
| usage       | how much is done, by day and by operation   |
| webhooks    | webhooks for admins, and delivering again   |
"""
