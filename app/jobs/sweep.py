"""What a tick tidies up, without having claimed it: each statement is bounded, and skips what others hold.

running, lease over --rescue--> ready | dead      ready, too late --expire--> expired      finished, old --prune--> gone
"""

from dataclasses import dataclass

from app.db import Connection
from app.jobs.queue import ERRORS_KEPT


@dataclass(frozen=True, slots=True)
class Moved:
    """A row that a sweep has moved, and where to."""

    id: int
    queue: str
    status: str


RESCUE = """
    WITH expired AS MATERIALIZED (
        SELECT jobs.id
        FROM jobs
        WHERE jobs.status = 'running' AND jobs.locked_until <= now()
        ORDER BY jobs.locked_until
        LIMIT $1
        FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE jobs
    SET status = CASE WHEN crashes + 1 >= $2 THEN 'dead' ELSE 'ready' END,
        crashes = crashes + 1,
        locked_until = NULL,
        finished_at = CASE WHEN crashes + 1 >= $2 THEN now() END,
        last_error = CASE WHEN crashes + 1 >= $2 THEN 'crashed' ELSE last_error END,
        errors = CASE WHEN jsonb_array_length(errors) >= $3 THEN errors - 0 ELSE errors END
            || jsonb_build_object('attempt', attempts, 'at', now(), 'error', 'crashed: its lease ran out')
    FROM expired
    WHERE jobs.id = expired.id
    RETURNING jobs.id, jobs.queue, jobs.status
"""


async def rescue(connection: Connection, limit: int, max_crashes: int) -> list[Moved]:
    """Return up to *limit* jobs whose lease ran out to the queue; bury those that crashed *max_crashes* times."""
    return [Moved(*row.values()) for row in await connection.fetch(RESCUE, limit, max_crashes, ERRORS_KEPT)]


EXPIRE = """
    WITH late AS MATERIALIZED (
        SELECT jobs.id
        FROM jobs
        WHERE jobs.status = 'ready' AND jobs.expires_at <= now()
        ORDER BY jobs.expires_at
        LIMIT $1
        FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE jobs
    SET status = 'expired', finished_at = now()
    FROM late
    WHERE jobs.id = late.id
    RETURNING jobs.id, jobs.queue, jobs.status
"""


async def expire(connection: Connection, limit: int) -> list[Moved]:
    """Finish up to *limit* ready jobs that are useless by now."""
    return [Moved(*row.values()) for row in await connection.fetch(EXPIRE, limit)]


PRUNE = """
    WITH old AS MATERIALIZED (
        SELECT jobs.id
        FROM jobs
        WHERE jobs.status IN ('done', 'cancelled', 'expired')
            AND jobs.finished_at < now() - make_interval(secs => $1)
        ORDER BY jobs.finished_at
        LIMIT $2
        FOR UPDATE SKIP LOCKED
    )
    DELETE FROM jobs
    USING old
    WHERE jobs.id = old.id
    RETURNING jobs.id
"""


async def prune(connection: Connection, older_than: float, limit: int) -> int:
    """Delete up to *limit* jobs that finished over *older_than* seconds ago, never dead ones; return how many."""
    return len(await connection.fetch(PRUNE, older_than, limit))
