"""Delivering webhooks.

| module     | contents                                                                  |
|------------|---------------------------------------------------------------------------|
| messages   | what is sent of an occurrence                                             |
| signatures | the signature of a message                                                |
| sending    | one request, only to an address that was checked                          |
| slots      | which requests may be under way: each webhook has its share               |
| delivering | shards: claiming them, sending what waits in order, backing off            |
"""
