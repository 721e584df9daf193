"""Delivering webhooks.

| module     | contents                                                                  |
|------------|---------------------------------------------------------------------------|
| messages   | what is sent of an occurrence                                             |
| signatures | the signature of a message                                                |
| sending    | one request, only to an address that was checked                          |
| delivering | holding webhooks' leases, sending what waits, backing off                 |
"""
