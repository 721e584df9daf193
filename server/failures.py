"""The exception for an expected failure. In a module of its own, so that a command imports nothing else to say it."""


class Failed(Exception):
    """The command failed for a reason that its user can mend; the message says how. It is printed, with exit code 1."""
