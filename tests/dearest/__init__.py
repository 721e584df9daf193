"""The dearest documents that the service accepts, built from its schema, and what they cost.

`values` has what arguments take, `documents` builds documents of any size, `growing` makes them as large as the service
accepts, and `costs` runs them and counts.
"""
