"""The journal and webhooks: one function per field.

| module      | contents                                    |
|-------------|---------------------------------------------|
| occurrences | the journal as moderators read it           |
| webhooks    | webhooks for admins, and delivering again   |
"""
