"""Imports and exports: readers of files, and the loops that every part uses. Nothing here knows a table or a command.

| module    | contents                                                                                |
|-----------|-----------------------------------------------------------------------------------------|
| readers   | rows, each with its place: JSON Lines, CSV, a folder of SVG files                       |
| loop      | `import_records`, which repairs an interrupted run if run again; previews; exports      |
| temporary | folders for copies of what is imported or exported                                      |

Each part has a store, to which the loop gives what the rows mean, and which leaves alone what exists already.
"""
