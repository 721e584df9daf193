"""Exports of the whole table, imports of them, and copies between engines.

| module    | contents                                                                                    |
|-----------|---------------------------------------------------------------------------------------------|
| `file`    | the form of an export: written, and read with every check                                   |
| `spool`   | the rows that an export has read so far, sorted, on disk: what an interrupted one goes on from |
| `exports` | reads a table until two passes agree                                                        |
| `imports` | checks a whole file, fills an empty table with it, compares both                            |
| `sources` | the tables to read and to fill: their engines are started, or the embedded one's is copied  |
"""
