"""A channel that must wait: a rate limit, a quota or refused credentials stop it in the database, for every process.

open --suspend--> suspended until a time --(the time comes, or a person resumes it)--> open
"""

from typing import Any

from app.db import Connection

SUSPEND = """
    INSERT INTO channels AS held (name, suspended_until, reason, updated_at)
    VALUES ($1, now() + make_interval(secs => $2), $3, now())
    ON CONFLICT (name) DO UPDATE
    SET suspended_until = greatest(held.suspended_until, EXCLUDED.suspended_until), reason = EXCLUDED.reason,
        updated_at = now()
"""


async def suspend(connection: Connection, name: str, seconds: float, reason: str) -> None:
    """Let nothing out on channel *name* for *seconds*; of two suspensions the longer holds."""
    await connection.execute(SUSPEND, name, seconds, reason)


RESUME = """
    UPDATE channels
    SET suspended_until = NULL, alerted_until = NULL, updated_at = now()
    WHERE name = $1 AND suspended_until > now()
    RETURNING name
"""


async def resume(connection: Connection, name: str) -> bool:
    """Open channel *name* again at once; say whether it was suspended."""
    return await connection.fetchval(RESUME, name) is not None


SUSPENDED = """
    SELECT name
    FROM channels
    WHERE suspended_until > now()
    ORDER BY name
"""


async def suspended(connection: Connection) -> list[str]:
    """Name the channels that must wait."""
    return [row["name"] for row in await connection.fetch(SUSPENDED)]


LIST_CHANNELS = """
    SELECT name, suspended_until, reason, updated_at
    FROM channels
    ORDER BY name
    LIMIT 100
"""


async def list_channels(connection: Connection) -> list[dict[str, Any]]:
    """Return the channels that were ever suspended, with times as ISO 8601 text."""
    return [
        {
            "name": row["name"],
            "suspended_until": row["suspended_until"].isoformat() if row["suspended_until"] else None,
            "reason": row["reason"],
            "updated_at": row["updated_at"].isoformat(),
        }
        for row in await connection.fetch(LIST_CHANNELS)
    ]
