"""Rows that tests put straight into the tables."""

import json
from typing import Any

FINISHED = ("done", "dead", "cancelled", "expired")


async def add_job(conn: Any, kind: str = "note.taken", status: str = "ready", **columns: Any) -> int:
    """Insert one job and return its id; *columns* are cast by their column's type."""
    values = {"kind": kind, "status": status} | {name: str(value) for name, value in columns.items()}
    if status in FINISHED:
        values.setdefault("finished_at", "now")
    if status == "running":
        values.setdefault("locked_until", "2999-01-01T00:00:00Z")
    return int(
        await conn.fetchval(
            """
            INSERT INTO jobs (kind, status, queue, priority, attempts, crashes, max_attempts, last_error, run_at,
                expires_at, locked_until, started_at, finished_at, created_at, payload, fence)
            SELECT $1, $2, coalesce(v.queue, 'default'), coalesce(v.priority, 0), coalesce(v.attempts, 0),
                coalesce(v.crashes, 0), coalesce(v.max_attempts, 8), v.last_error, coalesce(v.run_at, now()),
                v.expires_at, v.locked_until, v.started_at, v.finished_at, coalesce(v.created_at, now()),
                coalesce(v.payload, '{}'), coalesce(v.fence, 0)
            FROM jsonb_populate_record(NULL::jobs, ($3::text::jsonb)) AS v
            RETURNING id
            """,
            kind,
            status,
            _json(values),
        )
    )


def _json(values: dict[str, Any]) -> str:
    payload = values.pop("payload", None)
    text = json.dumps(values)
    return text if payload is None else text[:-1] + f', "payload": {payload}}}'


async def add_tick(conn: Any, seconds_ago: float = 0, errors: str = "[]") -> None:
    """Leave a tick's row behind, as if it had run then."""
    await conn.execute(
        """
        INSERT INTO ticks (id, started_at, finished_at, source, summary)
        VALUES (gen_random_uuid(), now() - make_interval(secs => $1), now() - make_interval(secs => $1), 'test',
            jsonb_build_object('errors', $2::text::jsonb))
        """,
        seconds_ago,
        errors,
    )
