"""Rules for single values.

| module            | contents                                      |
|-------------------|-----------------------------------------------|
| texts             | lines of text, web addresses, email addresses |
| network_addresses | network addresses, as limits count them       |
| node_ids          | ids of nodes                                  |
| languages         | one tag for each; those of our own pages      |
"""
