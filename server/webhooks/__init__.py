"""Delivering webhooks.

| module     | contents                                                                 |
|------------|--------------------------------------------------------------------------|
| sending    | one message, signed, in one request, only to an address that was checked |
| delivering | holding webhooks' leases, sending what waits, backing off                |
"""
