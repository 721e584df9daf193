"""Rules for single values.

| module            | contents                                      |
|-------------------|-----------------------------------------------|
| texts             | lines of text, web addresses, email addresses |
| page_languages    | the languages of the service's own pages      |
| network_addresses | network addresses, as limits count them       |
| node_ids          | ids of nodes                                  |
| languages         | one tag for each language                     |
"""
