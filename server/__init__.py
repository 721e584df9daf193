"""HTTP, WebSockets and the command line. Here is what every room may raise, so that it imports nothing else for it."""


class Failed(Exception):
    """The command failed for a reason that the user can fix; the message says how. It is printed, with exit code 1."""
