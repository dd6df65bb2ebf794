"""Rows of `jobs` put there by plain SQL, the time that passes for them, and what became of them."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from app import tick
from app.db import Connection
from app.jobs.queue import Claimed, claim
from app.jobs.services import Services
from app.tick import Budget

LEASE = 60.0

PUT = """
    INSERT INTO jobs (kind, queue, priority, max_attempts, payload, run_at)
    SELECT $1, $2, $3, $4, jsonb_build_object('n', n), now() - make_interval(secs => $6 + $5 - n)
    FROM generate_series(1, $5::int) AS n
    RETURNING id
"""


async def put(
    conn: Connection,
    count: int = 1,
    *,
    kind: str = "toy",
    queue: str = "default",
    priority: int = 0,
    max_attempts: int = 8,
    due_since: float = 1.0,
) -> list[int]:
    """Insert *count* jobs that fell due a second apart, the last one *due_since* seconds ago; return their ids."""
    rows = await conn.fetch(PUT, kind, queue, priority, max_attempts, count, due_since)
    return [row["id"] for row in rows]


ROW = """
    SELECT id, status, attempts, crashes, fence, run_at, run_at - now() AS wait, locked_until,
        locked_until - now() AS lease, last_error, errors::text, finished_at, started_at, dedupe_key, expires_at,
        payload::text, kind, priority, queue, max_attempts
    FROM jobs
    WHERE id = $1
"""


async def row_of(conn: Connection, job_id: int) -> dict[str, Any]:
    """Return one row, its errors and payload decoded; *wait* and *lease* are seconds from now."""
    row = await conn.fetchrow(ROW, job_id)
    assert row is not None
    found = dict(row.items())
    found["errors"], found["payload"] = json.loads(found["errors"]), json.loads(found["payload"])
    for name in ("wait", "lease"):
        found[name] = None if found[name] is None else found[name].total_seconds()
    return found


WHOLE_ROW = """
    SELECT to_jsonb(jobs)::text
    FROM jobs
    WHERE id = $1
"""


async def whole_row(conn: Connection, job_id: int) -> str:
    """Return every column of a row as one text, to tell whether anything at all has changed."""
    text: str = await conn.fetchval(WHOLE_ROW, job_id)
    return text


STATUSES = """
    SELECT status, count(*) AS jobs
    FROM jobs
    GROUP BY status
"""


async def statuses(conn: Connection) -> dict[str, int]:
    """Return how many jobs are in each state."""
    return {row["status"]: row["jobs"] for row in await conn.fetch(STATUSES)}


MAKE_DUE = """
    UPDATE jobs
    SET run_at = now()
    WHERE status = 'ready' AND run_at > now()
"""


async def make_due(conn: Connection) -> None:
    """Let the time pass for which ready jobs wait."""
    await conn.execute(MAKE_DUE)


END_LEASES = """
    UPDATE jobs
    SET locked_until = now() - interval '1 second'
    WHERE status = 'running'
"""


async def end_leases(conn: Connection) -> None:
    """Let the time pass for which running jobs are leased."""
    await conn.execute(END_LEASES)


async def claim_one(conn: Connection, kind: str = "toy") -> Claimed:
    """Lease the one job that is due."""
    (claimed,) = await claim(conn, ["default"], [kind], 1, LEASE)
    return claimed


def ids_of(rows: Iterable[Claimed]) -> list[int]:
    """Return the ids in the order in which they were claimed."""
    return [row.id for row in rows]


async def tick_once(services: Services, *, jobs: int = 100, seconds: float = 25.0) -> dict[str, Any]:
    """Run one tick and return its summary."""
    return (await tick.run(services, Budget(jobs, 100, seconds), "test")).as_dict()


WAITERS = """
    SELECT count(*)
    FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND pid <> pg_backend_pid()
"""


async def until_waiting(watcher: Connection, count: int = 1) -> None:
    """Return once *count* sessions of this database wait for a lock, as *watcher* sees it."""

    async def are_waiting() -> bool:
        waiting: int = await watcher.fetchval(WAITERS)
        return waiting >= count

    await until(are_waiting)


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    """Ask the database again and again until it *is_so*, for half a minute at most."""
    async with asyncio.timeout(30):
        while True:
            if await is_so():
                return
            await asyncio.sleep(0)
