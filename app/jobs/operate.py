"""What an operator does to one job by hand: cancel one that waits, send a dead one round again."""

from typing import Any

from app.db import Connection
from app.errors import Conflict, NotFound

CANCEL = """
    WITH found AS (
        SELECT id, status
        FROM jobs
        WHERE id = $1
        FOR NO KEY UPDATE
    ),
    moved AS (
        UPDATE jobs
        SET status = 'cancelled', finished_at = now()
        FROM found
        WHERE jobs.id = found.id AND found.status = 'ready'
        RETURNING jobs.id
    )
    SELECT found.status, EXISTS (SELECT 1 FROM moved) AS is_moved
    FROM found
"""


async def cancel(connection: Connection, job_id: int) -> None:
    """Stop the ready job *job_id* for good; raise NotFound, or Conflict when it is not ready."""
    _require(await connection.fetchrow(CANCEL, job_id), job_id, "cancelled", "ready")


# Attempts and crashes start anew, the history and the fence stay: a write of the old run still changes nothing.
REQUEUE = """
    WITH found AS (
        SELECT id, status
        FROM jobs
        WHERE id = $1
        FOR NO KEY UPDATE
    ),
    moved AS (
        UPDATE jobs
        SET status = 'ready', run_at = now(), attempts = 0, crashes = 0, finished_at = NULL
        FROM found
        WHERE jobs.id = found.id AND found.status = 'dead'
        RETURNING jobs.id
    )
    SELECT found.status, EXISTS (SELECT 1 FROM moved) AS is_moved
    FROM found
"""


async def requeue(connection: Connection, job_id: int) -> None:
    """Make the dead job *job_id* due now, with all its attempts back; raise NotFound, or Conflict when it is not dead.

    A dedupe_key belongs to one row for as long as that row exists, dead or alive: a dead job never has a live twin.
    """
    _require(await connection.fetchrow(REQUEUE, job_id), job_id, "requeued", "dead")


def _require(row: Any, job_id: int, done: str, state: str) -> None:
    if row is None:
        raise NotFound(f"there is no job {job_id}")
    if not row["is_moved"]:
        raise Conflict(f"job {job_id} is {row['status']}: only a {state} job can be {done}")
