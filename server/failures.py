"""The exception for an expected failure. In a module of its own, so that a command imports nothing else to say it."""


class Failed(Exception):
    """What was asked for cannot be done; the message says why and what to do. A command prints it, with exit code 1."""
