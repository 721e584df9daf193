"""Who uses the service, as far as every part needs to know.

| module        | contents                                                     |
|---------------|--------------------------------------------------------------|
| profile       | a member's own profile                                       |
| identities    | finding the member of who signs in, and making one           |
| visibility    | what a viewer sees of profiles                               |
| confirmations | emails that confirm an address by a link                     |
| challenges    | proofs of work                                               |
| member_data   | how a part says what it does with one member's data          |
"""
