"""What an operator does by hand: cancel a job that waits, requeue a dead one; one, or all that fit a filter."""

from dataclasses import dataclass, replace
from typing import Any

from app.db import Connection
from app.errors import BadInput, Conflict, NotFound
from app.jobs.lists import Filter, match_jobs

BULK = 1000

# locked_until is set too: the CHECKs are asked of the row as this statement first saw it, running perhaps, before the
# wait for its lock brings in the row as it stands.
CANCEL = """
    WITH found AS (
        SELECT id, status
        FROM jobs
        WHERE id = $1
        FOR NO KEY UPDATE
    ),
    moved AS (
        UPDATE jobs
        SET status = 'cancelled', locked_until = NULL, finished_at = now()
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
        SET status = 'ready', locked_until = NULL, run_at = now(), attempts = 0, crashes = 0, finished_at = NULL
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


@dataclass(frozen=True, slots=True)
class Bulk:
    """What one bulk step did, or would do: the *ids*, newest first; *next_id* is the next step's *before_id*."""

    ids: list[int]
    next_id: int | None


REQUEUE_MANY = """
    WITH found AS MATERIALIZED (
        SELECT id
        FROM jobs
        WHERE id = ANY ($1::text[]::bigint[]) AND status = 'dead'
        ORDER BY id
        FOR NO KEY UPDATE
    )
    UPDATE jobs
    SET status = 'ready', run_at = now(), attempts = 0, crashes = 0, finished_at = NULL
    FROM found
    WHERE jobs.id = found.id
    RETURNING jobs.id
"""


async def requeue_many(
    connection: Connection, wanted: Filter, *, before_id: int | None = None, limit: int = BULK, is_dry_run: bool = False
) -> Bulk:
    """Requeue up to *limit* dead jobs that fit *wanted*, newest first; call again with *next_id* until it is None.

    A dry run changes nothing and returns the ids that would be. Raise BadInput when *wanted* names another status.
    """
    return await _change_many(connection, REQUEUE_MANY, _only(wanted, "dead"), before_id, limit, is_dry_run=is_dry_run)


CANCEL_MANY = """
    WITH found AS MATERIALIZED (
        SELECT id
        FROM jobs
        WHERE id = ANY ($1::text[]::bigint[]) AND status = 'ready'
        ORDER BY id
        FOR NO KEY UPDATE
    )
    UPDATE jobs
    SET status = 'cancelled', finished_at = now()
    FROM found
    WHERE jobs.id = found.id
    RETURNING jobs.id
"""


async def cancel_many(
    connection: Connection, wanted: Filter, *, before_id: int | None = None, limit: int = BULK, is_dry_run: bool = False
) -> Bulk:
    """Cancel up to *limit* ready jobs that fit *wanted*; as `requeue_many`."""
    return await _change_many(connection, CANCEL_MANY, _only(wanted, "ready"), before_id, limit, is_dry_run=is_dry_run)


def _only(wanted: Filter, status: str) -> Filter:
    if wanted.status not in (None, status):
        raise BadInput(f"status: only {status} jobs can be changed this way")
    return replace(wanted, status=status)


async def _change_many(
    connection: Connection, statement: str, wanted: Filter, before_id: int | None, limit: int, *, is_dry_run: bool
) -> Bulk:
    ids, next_id = await match_jobs(connection, wanted, before_id=before_id, limit=limit)
    if ids and not is_dry_run:
        rows = await connection.fetch(statement, [str(job_id) for job_id in ids])
        ids = sorted((row["id"] for row in rows), reverse=True)
    return Bulk(ids, next_id)
