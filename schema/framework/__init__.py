"""What the parts' types and fields are made with.

| module       | contents                                                                                           |
|--------------|----------------------------------------------------------------------------------------------------|
| arguments    | a field's arguments, from a resolver's annotations; the arguments of a page                        |
| declarations | types, enums, nodes, scalars; fields, connections, subscriptions, mutations; `Refused`; the codes  |
| lazy         | the member's type, before it is made                                                               |
"""
