"""The cookies of the service's own pages: visitors', and that of a session.

A session's cookie is kept by browsers for exactly this host, over TLS (`__Host-`). A service without TLS on this
machine cannot set one, so there its name has no prefix; anywhere else nobody signs in by a page without TLS.
"""

import re

COOKIE = "ringside_visitor"
READER_COOKIE = "ringside_reader"
"""Of a visitor who has carried out no mutation yet."""
SESSION_COOKIE = "ringside_session"
"""Of a member who signed in on a page of the service's own origin."""
A_YEAR = 365 * 24 * 60 * 60
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_PORT = re.compile(r":[0-9]*$")


def set_cookie(name: str, value: str, age: int, *, secure: bool) -> str:
    """The header that keeps a cookie for so many seconds, or with age 0 deletes it."""
    return f"{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax" + ("; Secure" if secure else "")


def cookie_values(header: bytes) -> dict[str, str]:
    """The values in a Cookie header; of two with a name the first, which has the closer path."""
    values: dict[str, str] = {}
    for pair in header.decode("latin-1").split(";"):
        name, _, value = pair.strip(" \t").partition("=")  # other blanks belong to the name
        values.setdefault(name, value)
    return values


def bound_to_host(name: str, host: str, *, secure: bool) -> str:
    """The name of a cookie that browsers send to exactly this host."""
    is_plain = not secure and _PORT.sub("", host) in LOOPBACK
    return name if is_plain else f"__Host-{name}"


def set_bound_cookie(name: str, value: str, age: int, host: str, *, secure: bool) -> str:
    """The header that keeps such a cookie, or with age 0 deletes it."""
    name = bound_to_host(name, host, secure=secure)
    return set_cookie(name, value, age, secure=name.startswith("__Host-"))
