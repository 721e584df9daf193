"""A request: who sends it, what serves it, and how often it may come.

| module         | contents                                                                            |
|----------------|-------------------------------------------------------------------------------------|
| context        | `Services` (shared by all requests of a process) and `Context` (one request)        |
| viewer         | who sends the request                                                               |
| policy         | the settings that resolvers follow                                                  |
| rate_limits    | limits of one process                                                               |
| address_limits | limits of a network address, which all processes share                              |
"""
