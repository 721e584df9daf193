"""Exports of the whole table, imports of them, and copies between engines.

| module    | contents                                                                                   |
|-----------|--------------------------------------------------------------------------------------------|
| `file`    | the form of an export: written, and read with every check                                  |
| `exports` | reads a table until two passes agree; what was read so far is kept on disk, sorted         |
| `imports` | checks a whole file, fills an empty table with it, compares both                           |
| `sources` | the tables to read and to fill: their engines are started, or the embedded one's is copied |
"""
