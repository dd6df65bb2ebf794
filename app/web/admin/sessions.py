"""Who is logged in: sessions live in the database, the browser holds 256 random bits, and nobody holds both.

    login --open--> session --find--> session ... --close--> gone        30 min idle, or 12 h after the login: gone

The table keeps an HMAC of the bits, keyed with ADMIN_TOKEN: a copy of the database opens nothing, and a new
token ends every session of the old one. A form's token is another HMAC of the same bits, so it needs no column.
"""

import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime

from pydantic import SecretStr

from app.db import Connection

KEY_BYTES = 32
KEY_CHARS = 43
IDLE_SECONDS = 1800.0
LONGEST_SECONDS = 43_200.0
TOUCH_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Session:
    """One login, as it was found at *now*: *key* is what the browser holds."""

    key: str
    expires_at: datetime
    now: datetime

    @property
    def form_token(self) -> str:
        """What each form of this session must repeat, and a page of another site cannot know."""
        return hmac.new(self.key.encode(), b"dormouse form", "sha256").hexdigest()

    def owns_form(self, token: str) -> bool:
        """Say whether *token* came from a page of this session."""
        return hmac.compare_digest(self.form_token.encode(), token.encode())


def _digest(key: str, admin_token: SecretStr | None) -> bytes:
    secret = b"" if admin_token is None else admin_token.get_secret_value().encode()
    return hmac.new(secret, key.encode(), "sha256").digest()


OPEN_SESSION = """
    WITH over AS (
        DELETE FROM admin_sessions
        WHERE expires_at <= now() OR last_seen_at <= now() - make_interval(secs => $2)
    )
    INSERT INTO admin_sessions (digest, expires_at)
    VALUES ($1, now() + make_interval(secs => $3))
    RETURNING expires_at, now() AS now
"""


async def open_session(connection: Connection, admin_token: SecretStr | None) -> Session:
    """Begin a session under a key that nobody has seen; those that are over are swept away."""
    key = secrets.token_urlsafe(KEY_BYTES)
    digest = _digest(key, admin_token)
    row = await connection.fetchrow(OPEN_SESSION, digest, IDLE_SECONDS, LONGEST_SECONDS)
    assert row is not None  # noqa: S101 - an INSERT returns its row
    return Session(key, row["expires_at"], row["now"])


FIND_SESSION = """
    WITH found AS (
        SELECT digest, expires_at, last_seen_at
        FROM admin_sessions
        WHERE digest = $1 AND expires_at > now() AND last_seen_at > now() - make_interval(secs => $2)
    ),
    touched AS (
        UPDATE admin_sessions
        SET last_seen_at = now()
        FROM found
        WHERE admin_sessions.digest = found.digest AND $4
            AND found.last_seen_at < now() - make_interval(secs => $3)
    )
    SELECT expires_at, now() AS now
    FROM found
"""


async def find_session(
    connection: Connection, key: str, admin_token: SecretStr | None, *, is_a_person: bool
) -> Session | None:
    """Return the session under *key*, None when it is over; a request that *is_a_person*'s own keeps it awake."""
    if len(key) != KEY_CHARS:
        return None
    digest = _digest(key, admin_token)
    row = await connection.fetchrow(FIND_SESSION, digest, IDLE_SECONDS, TOUCH_SECONDS, is_a_person)
    return None if row is None else Session(key, row["expires_at"], row["now"])


CLOSE_SESSION = """
    DELETE FROM admin_sessions
    WHERE digest = $1
"""


async def close_session(connection: Connection, key: str, admin_token: SecretStr | None) -> None:
    """End the session under *key* for good."""
    await connection.execute(CLOSE_SESSION, _digest(key, admin_token))
