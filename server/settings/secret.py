"""The secret of an embedded deployment: created once, stored with its data, the same after every restart."""

import os
import secrets
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from datastore.values.seal import MOST_SECRETS

MIN_SECRET_LENGTH = 32
"""Characters: the length of the SHA-256 key that it becomes."""


class UnreadableSecret(Exception):
    """The file with the secret can be neither read nor created, or its content cannot be used."""


def load_or_create_secrets(folder: Path) -> list[str]:
    """The secrets in the folder's file, newest first. Creates the file if there is none."""
    path = folder / "secret"
    try:
        if not path.exists():
            _create(path)
        text = path.read_text(encoding="utf-8")
    except (IsADirectoryError, UnicodeDecodeError) as error:
        found = "not text" if isinstance(error, UnicodeDecodeError) else "a folder"
        raise UnreadableSecret(
            f"and {path} is {found}. Put the saved secret back in its place. Or delete it, and a new one is made; "
            "cookies and tokens signed before are then refused."
        ) from error
    except OSError as error:
        raise UnreadableSecret(
            f"and {path} can be neither read nor made ({error.strerror}). Let this user write to the folder, or set "
            "another RINGSIDE_DATA."
        ) from error
    stored = [secret.strip() for secret in text.split(",")]
    if any(len(secret) < MIN_SECRET_LENGTH for secret in stored):
        raise UnreadableSecret(
            f"and {path} holds a secret of fewer than {MIN_SECRET_LENGTH} characters. Delete the file, and a new one "
            "is made; cookies and tokens signed before are then refused."
        )
    if len(stored) > MOST_SECRETS:
        raise UnreadableSecret(
            f"and {path} holds more than {MOST_SECRETS} secrets. Leave the newest {MOST_SECRETS}, which come first; "
            "what the others signed is then refused."
        )
    return stored


def _create(path: Path) -> None:
    """Write the file in full before it gets its name. If another process was faster, its secret is used."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with NamedTemporaryFile("w", dir=path.parent, prefix=".secret-") as whole:  # 0600 from its first byte
        whole.write(secrets.token_urlsafe(48) + "\n")
        whole.flush()
        os.fsync(whole.fileno())
        with suppress(FileExistsError):
            os.link(whole.name, path)
