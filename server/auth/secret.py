"""The secret of an embedded deployment: made once, kept beside its data, the same after every restart."""

import os
import secrets
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

SHORTEST_SECRET = 32
"""Characters: as long as the SHA-256 key it becomes."""


class UnreadableSecret(Exception):
    """The file with the secret can be neither read nor made."""


def standing_secrets(folder: Path) -> list[str]:
    """Return the secrets in the folder's file, newest first; make the file if there is none."""
    path = folder / "secret"
    try:
        if not path.exists():
            _make(path)
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise UnreadableSecret(
            f"and {path} can be neither read nor made ({reason}). Let this user write to the folder, or set another "
            "RINGSIDE_DATA."
        ) from error
    found = [secret.strip() for secret in text.split(",")]
    if any(len(secret) < SHORTEST_SECRET for secret in found):
        raise UnreadableSecret(
            f"and {path} holds a secret of fewer than {SHORTEST_SECRET} characters. Delete the file, and a new one is "
            "made; cookies and tokens signed before are then refused."
        )
    return found


def _make(path: Path) -> None:
    """Write the whole file first, then give it its name, unless another process was quicker: then its secret stands."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile("w", dir=path.parent, prefix=".secret-") as whole:  # 0600 from its first byte
        whole.write(secrets.token_urlsafe(48) + "\n")
        whole.flush()
        os.fsync(whole.fileno())
        with suppress(FileExistsError):
            os.link(whole.name, path)
