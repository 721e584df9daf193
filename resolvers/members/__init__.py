"""What is done with a member, and the keys of machines.

| module        | contents                                                                          |
|---------------|-----------------------------------------------------------------------------------|
| suspensions   | who may not write and who has roles, known to every process; giving members roles |
| sessions      | finding the session of a token; ending sessions                                   |
| sign_in_codes | asking for a sign-in: by which method, the code by email, where it leads back to  |
| signing_in    | what proves who somebody is, and the session that begins then                     |
| visibility    | what a viewer sees of suspensions and API keys                                    |
| api_keys      | keys for machines                                                                 |
"""
