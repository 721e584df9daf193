"""Rules for single values.

| module            | contents                                         |
|-------------------|--------------------------------------------------|
| texts             | lines of text and web addresses                  |
| email_addresses   | email addresses                                  |
| network_addresses | network addresses, as limits count them          |
| node_ids          | ids of nodes                                     |
"""
