"""Lists of jobs for a person: newest first, paged by id, each page bounded in what it reads.

    status    which index is walked back                     filters: kind, queue, error text, time
    ------    --------------------------                     are applied to what is walked
    dead, cancelled, expired   jobs_ended_idx
    ready                      all ready rows, sorted
    other                      the primary key, 100,000 rows a page

A page may hold fewer rows than asked for and still name a next one: that many rows were read and the rest lies further
back. No list needs an index that a job which ends well would have to pay for.
"""

from dataclasses import dataclass
from datetime import datetime

from app.db import Connection
from app.jobs.browse import JobRow, job_row

WINDOW = 100_000
LOOK_SECONDS = 2.0
NEWEST = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which jobs are meant: all that are named must fit, None fits any.

    *error* is a piece of `last_error`, in any case. *since* and *until* bound the job's last change: when it
    finished, else started, else was created; *since* is inside, *until* outside.
    """

    status: str | None = None
    kind: str | None = None
    queue: str | None = None
    error: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing beside the status narrows it down."""
        return (self.kind, self.queue, self.error, self.since, self.until) == (None,) * 5


@dataclass(frozen=True, slots=True)
class Page:
    """Some jobs, newest first; *next_id* is the *before_id* of the page after it, None on the last one."""

    rows: list[JobRow]
    next_id: int | None


# The error's text is looked for in what the window holds, nowhere else.
MATCH_WALKING = """
    SELECT id
    FROM (
        SELECT id, kind, queue, last_error, created_at, started_at, finished_at
        FROM jobs
        WHERE id < $1 AND ($2::text IS NULL OR status = $2)
        ORDER BY id DESC
        LIMIT $3
    ) AS walked
    WHERE ($4::text IS NULL OR kind = $4)
        AND ($5::text IS NULL OR queue = $5)
        AND ($6::text IS NULL OR position(lower($6) IN lower(last_error)) > 0)
        AND ($7::timestamptz IS NULL OR coalesce(finished_at, started_at, created_at) >= $7)
        AND ($8::timestamptz IS NULL OR coalesce(finished_at, started_at, created_at) < $8)
    ORDER BY id DESC
    LIMIT $9
"""

# Two halves, because the ready rows lie in two partial indexes.
MATCH_READY = """
    WITH ready AS MATERIALIZED (
        SELECT id FROM jobs
        WHERE status = 'ready' AND crashes = 0 AND id < $1
            AND ($2::text IS NULL OR kind = $2)
            AND ($3::text IS NULL OR queue = $3)
            AND ($4::text IS NULL OR position(lower($4) IN lower(last_error)) > 0)
            AND ($5::timestamptz IS NULL OR coalesce(started_at, created_at) >= $5)
            AND ($6::timestamptz IS NULL OR coalesce(started_at, created_at) < $6)
        UNION ALL
        SELECT id FROM jobs
        WHERE status = 'ready' AND crashes > 0 AND id < $1
            AND ($2::text IS NULL OR kind = $2)
            AND ($3::text IS NULL OR queue = $3)
            AND ($4::text IS NULL OR position(lower($4) IN lower(last_error)) > 0)
            AND ($5::timestamptz IS NULL OR coalesce(started_at, created_at) >= $5)
            AND ($6::timestamptz IS NULL OR coalesce(started_at, created_at) < $6)
    )
    SELECT id
    FROM ready
    ORDER BY id DESC
    LIMIT $7
"""


async def match_jobs(
    connection: Connection, wanted: Filter, *, before_id: int | None = None, limit: int = 50
) -> tuple[list[int], int | None]:
    """Return up to *limit* ids that fit *wanted*, newest first, older than *before_id*; and the next *before_id*.

    What takes over 2 s is cut off (TimeoutError).
    """
    start, is_ready = before_id or NEWEST, wanted.status == "ready"
    rest = (wanted.kind, wanted.queue, wanted.error, wanted.since, wanted.until, limit)
    if is_ready:
        found = await connection.fetch(MATCH_READY, start, *rest, timeout=LOOK_SECONDS)
    else:
        found = await connection.fetch(MATCH_WALKING, start, wanted.status, WINDOW, *rest, timeout=LOOK_SECONDS)
    ids = [row["id"] for row in found]
    if len(ids) == limit:
        return ids, ids[-1]
    return ids, None if is_ready or wanted.is_empty else await _window_end(connection, start, wanted.status)


WINDOW_END = """
    SELECT id
    FROM jobs
    WHERE id < $1 AND ($2::text IS NULL OR status = $2)
    ORDER BY id DESC
    OFFSET $3
    LIMIT 1
"""


async def _window_end(connection: Connection, start: int, status: str | None) -> int | None:
    """Return where the next window begins, None when the last one reached the oldest row."""
    value: int | None = await connection.fetchval(WINDOW_END, start, status, WINDOW - 1, timeout=LOOK_SECONDS)
    return value


# The payload is cut off where it is large: a page of a hundred must not weigh a hundred mebibytes.
ROWS_OF = """
    SELECT id, queue, kind, CASE WHEN pg_column_size(payload) <= 8192 THEN payload ELSE 'null' END::text AS payload,
        status, priority, attempts, max_attempts, run_at, expires_at, locked_until, fence, crashes, last_error,
        errors::text, dedupe_key, created_at, started_at, finished_at
    FROM jobs
    WHERE id = ANY ($1::text[]::bigint[])
    ORDER BY id DESC
"""


async def list_jobs(
    connection: Connection, wanted: Filter | None = None, *, before_id: int | None = None, limit: int = 50
) -> Page:
    """Return a page of up to *limit* jobs that fit *wanted*, newest first, older than *before_id*.

    A payload over 8 KiB is None in a list: `get_job` has it whole.
    """
    ids, next_id = await match_jobs(connection, wanted or Filter(), before_id=before_id, limit=limit)
    rows = await connection.fetch(ROWS_OF, [str(job_id) for job_id in ids], timeout=LOOK_SECONDS) if ids else []
    return Page([job_row(row) for row in rows], next_id)
