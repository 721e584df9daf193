"""Delivering webhooks.

| module     | contents                                                                  |
|------------|---------------------------------------------------------------------------|
| signatures | the signature of a message                                                |
| sending    | one request, only to an address that was checked                          |
| delivering | shards: claiming them, sending what waits in order, backing off            |
"""
