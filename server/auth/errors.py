"""Why a request is not served as anyone's: its credentials are invalid, or cannot be verified right now."""

from starlette.exceptions import HTTPException


class Unauthenticated(HTTPException):
    """The credentials are invalid. The reason goes into the response and quotes none of them."""

    def __init__(self, reason: str, *, clear_cookie: str | None = None) -> None:
        challenge = f'Bearer error="invalid_token", error_description="{reason}"'
        cookie = {"Set-Cookie": clear_cookie} if clear_cookie else {}
        super().__init__(401, reason, {"WWW-Authenticate": challenge, **cookie})


class KeysUnavailable(HTTPException):
    """The identity provider has not answered yet, so no token can be verified: not the caller's fault."""

    retry_after = 10.0
    """Seconds, at least, between two fetches of the keys."""

    def __init__(self) -> None:
        reason = "Tokens cannot be checked right now, since the provider of their keys does not answer."
        super().__init__(503, reason, {"Retry-After": f"{self.retry_after:.0f}"})
