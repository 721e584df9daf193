"""What is done with a member, and the keys of machines.

| module      | contents                                                            |
|-------------|---------------------------------------------------------------------|
| suspensions | who may not write and who has roles, known to every process         |
| roles       | giving members roles                                                |
| visibility  | what a viewer sees of suspensions and API keys                      |
| api_keys    | keys for machines                                                   |
"""
