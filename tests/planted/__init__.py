"""Bugs planted in the code, to learn which of them the tests find: `python -m tests.planted` lists the commands.

    record   run the tests and remember, for each, the lines of the four layers that it executes in its own process
    draw     choose forty lines that a test executes, ten a layer, and a change for each: tests/planted/bugs.json
    find     make each change in a copy of the tree, run the tests that execute the line, and say which one fails

A record lies in a folder of `.cache/planted/`; what was measured stands in docs/decisions/suite.md.
"""
