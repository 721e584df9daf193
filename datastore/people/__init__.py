"""Who uses the service, as far as every part needs to know.

| module        | contents                                                             |
|---------------|----------------------------------------------------------------------|
| profiles      | members' profiles                                                    |
| identities    | by what members are found who sign in                                |
| imported      | authors whom imports bring from other systems                        |
| confirmations | emails that confirm an address, each sent once a day; emails of runs |
| address_use   | how much of a limit an address, or a member, has used up             |
| challenges    | proofs of work that were spent                                       |
| member_items  | how a part says what it keeps of members                             |
"""
