"""What is done with a member, and the keys of machines.

| module        | contents                                                          |
|---------------|-------------------------------------------------------------------|
| suspensions   | who may not write, who has roles, and who is an admin             |
| api_keys      | keys for machines                                                 |
| sessions      | who is signed in, and until when                                  |
| sign_in_codes | codes by email, and what else proves once who somebody is         |
| exports       | exported files, until they are fetched                            |
| member_items  | what is kept of a member outside the other parts, and deleting it |
"""
