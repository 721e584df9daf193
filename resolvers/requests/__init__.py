"""A request: who sends it, what serves it, and how often it may come.

| module         | contents                                                                                          |
|----------------|---------------------------------------------------------------------------------------------------|
| context        | who sends a request; `Services` (shared by all requests of a process) and `Context` (one request) |
| policy         | the settings that resolvers follow, and limits of one process                                     |
| address_limits | limits of a network address, which all processes share                                            |
"""
