"""What the parts' types and fields are made with.

| module      | contents                                                                    |
|-------------|-----------------------------------------------------------------------------|
| arguments   | a field's arguments, from a resolver's annotations; the arguments of a page |
| fields      | fields from attributes and resolvers                                        |
| types       | types from records, enums, nodes; scalars                                   |
| connections | the types of a paged list; subscriptions                                    |
| mutations   | mutations, their inputs and payloads; `Refused`                             |
| error_codes | the codes of errors                                                         |
| lazy        | the member's type, before it is made                                        |
"""
