"""Looking at jobs: nothing here changes a row, and nothing scans without a cap."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from app.db import Connection

COUNT_CAP = 1000


@dataclass(frozen=True, slots=True)
class JobRow:
    """One row of `jobs`, payload and errors decoded."""

    id: int
    queue: str
    kind: str
    payload: Any
    status: str
    priority: int
    attempts: int
    max_attempts: int
    run_at: datetime
    expires_at: datetime | None
    locked_until: datetime | None
    fence: int
    crashes: int
    last_error: str | None
    errors: Any
    dedupe_key: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    def as_json(self) -> dict[str, Any]:
        """Return the row with its times as ISO 8601 text."""
        row = asdict(self)
        return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}


GET_JOB = """
    SELECT id, queue, kind, payload::text, status, priority, attempts, max_attempts, run_at, expires_at, locked_until,
        fence, crashes, last_error, errors::text, dedupe_key, created_at, started_at, finished_at
    FROM jobs
    WHERE id = $1
"""


async def get_job(connection: Connection, job_id: int) -> JobRow | None:
    """Return the row with *job_id*, or None."""
    row = await connection.fetchrow(GET_JOB, job_id)
    return None if row is None else job_row(row)


def job_row(row: Any) -> JobRow:
    """Return a row of `jobs`, payload and errors given as text, decoded."""
    values = dict(row.items())
    return JobRow(**values | {"payload": json.loads(row["payload"]), "errors": json.loads(row["errors"])})


@dataclass(frozen=True, slots=True)
class Survey:
    """What a tick finds, or leaves: what there is to sweep and to tell, what is due, and what nobody here can run.

    Counts stop at a cap for each queue and priority; *is_capped* says that one of them did.
    """

    has_leases_over: bool
    has_late: bool
    has_old: bool
    has_alerts: bool
    due: int
    reminders_due: int
    runnable_due: int
    suspects_due: int
    oldest_due_age_seconds: float | None
    unknown_kinds: dict[str, int]
    unserved_queues: dict[str, int]
    is_capped: bool
    dead: int
    next_due_at: datetime | None
    tick_gap_seconds: float | None
    backend_pid: int
    jobs_bytes: int
    now: datetime


# `names` jumps from queue to queue along jobs_claim_idx; each level is then read by equality, up to the cap. The
# cap's last row says that there may be more. Whether there is anything to sweep is asked of an index's first entry:
# with EXISTS, the planner reads the table instead when it believes that many rows fit.
SURVEY = """
    WITH RECURSIVE names AS (
        (SELECT queue FROM jobs WHERE status = 'ready' AND crashes = 0 ORDER BY queue LIMIT 1)
        UNION ALL
        SELECT (
            SELECT jobs.queue FROM jobs
            WHERE jobs.status = 'ready' AND jobs.crashes = 0 AND jobs.queue > names.queue
            ORDER BY jobs.queue LIMIT 1
        )
        FROM names
        WHERE names.queue IS NOT NULL
    ),
    level AS (
        SELECT names.queue, level.priority
        FROM names CROSS JOIN unnest('{1,0,-1}'::smallint[]) AS level (priority)
        WHERE names.queue IS NOT NULL
        LIMIT 150
    ),
    due AS MATERIALIZED (
        SELECT level.queue, ready.kind, ready.run_at, 0 AS crashes, ready.place
        FROM level CROSS JOIN LATERAL (
            SELECT jobs.kind, jobs.run_at, row_number() OVER () AS place
            FROM (
                SELECT kind, run_at FROM jobs
                WHERE status = 'ready' AND crashes = 0 AND queue = level.queue AND priority = level.priority
                    AND run_at <= now()
                ORDER BY run_at, id LIMIT $3
            ) AS jobs
        ) AS ready
        UNION ALL
        SELECT queue, kind, run_at, 1, row_number() OVER ()
        FROM (
            SELECT queue, kind, run_at FROM jobs
            WHERE status = 'ready' AND crashes > 0 AND run_at <= now() ORDER BY run_at, id LIMIT $3
        ) AS suspect
    ),
    stranger AS (
        SELECT kind, count(*) AS jobs FROM due
        WHERE queue = ANY ($1) AND kind <> ALL ($2) GROUP BY kind ORDER BY count(*) DESC, kind LIMIT 20
    ),
    unserved AS (
        SELECT queue, count(*) AS jobs FROM due WHERE queue <> ALL ($1) GROUP BY queue ORDER BY queue LIMIT 20
    ),
    finished_dead AS (
        SELECT count(*) AS jobs FROM (SELECT 1 FROM jobs WHERE status = 'dead' LIMIT $3 + 1) AS dead
    )
    SELECT
        coalesce((SELECT min(locked_until) FROM jobs WHERE status = 'running') <= now(), FALSE) AS has_leases_over,
        coalesce((SELECT min(expires_at) FROM jobs WHERE status = 'ready') <= now(), FALSE) AS has_late,
        coalesce(
            (SELECT min(finished_at) FROM jobs WHERE status IN ('done', 'cancelled', 'expired'))
            < now() - make_interval(secs => $4), FALSE
        ) AS has_old,
        cardinality($5::text[]) > 0 AND (
            EXISTS (
                SELECT 1 FROM alerts
                WHERE told_at IS NULL AND sink = ANY ($5) AND (claimed_until <= now()) IS NOT FALSE
            )
            OR EXISTS (SELECT 1 FROM jobs WHERE status = 'dead' AND alerted_fence IS DISTINCT FROM fence)
            OR EXISTS (
                SELECT 1 FROM stranger
                WHERE NOT EXISTS (
                    SELECT 1 FROM alerted_kinds
                    WHERE alerted_kinds.kind = stranger.kind AND seen_at >= now() - interval '1 day'
                )
            )
        ) AS has_alerts,
        count(*) FILTER (WHERE due.queue <> 'reminders') AS due,
        count(*) FILTER (WHERE due.queue = 'reminders') AS reminders_due,
        count(*) FILTER (WHERE due.queue = ANY ($1) AND due.kind = ANY ($2)) AS runnable_due,
        count(*) FILTER (WHERE due.crashes > 0) AS suspects_due,
        extract(epoch FROM now() - min(due.run_at))::float8 AS oldest_due_age_seconds,
        (SELECT coalesce(jsonb_object_agg(kind, jobs), '{}') FROM stranger)::text AS unknown_kinds,
        (SELECT coalesce(jsonb_object_agg(queue, jobs), '{}') FROM unserved)::text AS unserved_queues,
        coalesce(max(due.place) >= $3, FALSE) OR (SELECT jobs > $3 FROM finished_dead) AS is_capped,
        (SELECT least(jobs, $3) FROM finished_dead) AS dead,
        (
            SELECT min(next.run_at) FROM level CROSS JOIN LATERAL (
                SELECT jobs.run_at FROM jobs
                WHERE status = 'ready' AND crashes = 0 AND queue = level.queue AND priority = level.priority
                    AND jobs.run_at > now()
                ORDER BY jobs.run_at LIMIT 1
            ) AS next
            WHERE level.queue = ANY ($1)
        ) AS next_due_at,
        extract(epoch FROM now() - (SELECT max(started_at) FROM ticks))::float8 AS tick_gap_seconds,
        pg_backend_pid() AS backend_pid,
        pg_relation_size('jobs') AS jobs_bytes,
        now() AS now
    FROM due
"""


async def survey(
    connection: Connection,
    queues: list[str],
    kinds: list[str],
    keep_seconds: float,
    *,
    sinks: Sequence[str] = (),
    cap: int = COUNT_CAP,
) -> Survey:
    """Look once, in one statement, at all that a tick must know; *queues* and *kinds* are ours, *sinks* hear alerts."""
    row = await connection.fetchrow(SURVEY, queues, kinds, cap, keep_seconds, list(sinks))
    assert row is not None  # noqa: S101 - an aggregate without GROUP BY returns one row
    values = dict(row.items())
    for name in ("unknown_kinds", "unserved_queues"):
        values[name] = json.loads(values[name])
    return Survey(**values)
