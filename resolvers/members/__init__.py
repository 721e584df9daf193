"""What is done with a member, and the keys of machines.

| module           | contents                                                      |
|------------------|---------------------------------------------------------------|
| suspensions      | who may not write and who has roles, known to every process   |
| roles            | giving members roles                                          |
| sessions         | finding the session of a token; ending sessions               |
| sign_in_codes    | codes by email: asking for one, and checking it               |
| sign_in_methods  | by which methods people sign in here                          |
| signing_in       | what proves who somebody is, and the session that begins then |
| return_addresses | where a sign-in leads back to                                 |
| visibility       | what a viewer sees of suspensions and API keys                |
| api_keys         | keys for machines                                             |
"""
