"""Exports of the whole table, imports of them, and copies between engines.

| module  | contents                                                                                  |
|---------|-------------------------------------------------------------------------------------------|
| file    | the form of an export: written, read with every check; and the tables to read and to fill |
| exports | reads a table until two passes agree; what was read so far is kept on disk, sorted        |
| imports | checks a whole file, fills an empty table with it, compares both                          |
"""
