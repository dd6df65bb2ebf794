"""`.dormouse/`: what `dev` and `demo` keep between two runs, in the folder they are started from."""

import os
import secrets
from pathlib import Path

from app.config import Settings

HOME = Path(".dormouse")


def kept_secret(home: Path, name: str) -> str:
    """Return the secret *name* of *home*, made at the first call; only its owner may read the file."""
    path = home / name
    if path.exists() and (text := path.read_text().strip()):
        return text
    home.mkdir(parents=True, exist_ok=True)
    secret = secrets.token_hex(32)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(secret + "\n")
    return secret


def environment_without_settings() -> dict[str, str]:
    """Return this process's environment without any setting of ours: a demo must not mail real people."""
    names = {name.upper() for name in Settings.model_fields}
    return {name: value for name, value in os.environ.items() if name.upper() not in names}
