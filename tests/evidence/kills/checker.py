"""What must be true when all is over: nothing lost, nothing done twice inside, nothing written by who had no right.

Returns sentences, none when all is well. `last_ticks` lets a healthy process finish what the others left.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from app import tick
from app.db import Connection
from app.jobs.services import Services
from app.tick import Budget
from tests.evidence.kills.deeds import INSIDE, Mark

ROUNDS_MOST = 60
LONGEST_WAIT = 10.0
SHOWN = 10
# A claim raises the fence, everything else keeps it; what is finished stays as it is.
MOVES = {("ready", "running", 1), ("running", "ready", 0), ("running", "done", 0)}
BUSY = """
    SELECT EXISTS (
        SELECT 1 FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'dormouse' AND state <> 'idle'
    ) OR EXISTS (SELECT 1 FROM jobs WHERE status = 'running' AND locked_until > now())
"""
OVERDUE = "SELECT count(*) FROM jobs WHERE status = 'running' AND locked_until <= now()"
OPEN = "SELECT EXISTS (SELECT 1 FROM jobs WHERE status IN ('ready', 'running'))"
JOBS = "SELECT id, kind, status, attempts, crashes, fence, errors::text FROM jobs WHERE kind LIKE 'deed.%' ORDER BY id"
# Between the last ticks nothing runs: what a busy machine has cut short need not wait for its lease.
MAKE_DUE = """
    UPDATE jobs
    SET run_at = least(run_at, now()), locked_until = locked_until - interval '1 hour'
    WHERE status IN ('ready', 'running')
"""
HISTORY = "SELECT id, old_status, status, fence - old_fence AS step FROM history"
EFFECTS = "SELECT job_id, fence FROM effects"


async def leases_are_over(conn: Connection) -> None:
    """Wait until the dead have let go: no statement of theirs runs on, and no lease is in force."""
    async with asyncio.timeout(LONGEST_WAIT):
        while await conn.fetchval(BUSY):  # noqa: ASYNC110 - only the database knows
            await asyncio.sleep(0.02)


async def last_ticks(conn: Connection, services: Services) -> list[str]:
    """Tick until nothing is open; the very first tick must leave no lease that is over."""
    await tick.run(services, Budget.from_settings(services.settings), "last")
    overdue = await conn.fetchval(OVERDUE)
    problems = [f"{overdue} rows are still running under a lease that is over, one tick later"] if overdue else []
    for _ in range(ROUNDS_MOST):
        if not await conn.fetchval(OPEN):
            return problems
        await conn.execute(MAKE_DUE)
        await tick.run(services, Budget.from_settings(services.settings), "last")
    return [*problems, f"after {ROUNDS_MOST} more ticks there is still something open"]


async def check(conn: Connection, enqueued: Collection[int], marks: Mapping[int, Sequence[Mark]]) -> list[str]:
    """Compare jobs, effects, marks and history; return at most a few sentences about what does not fit."""
    jobs = {row["id"]: row for row in await conn.fetch(JOBS)}
    effects: dict[int, list[int]] = {}
    for row in await conn.fetch(EFFECTS):
        effects.setdefault(row["job_id"], []).append(row["fence"])
    problems = [f"{number} jobs are lost" for number in [len(set(enqueued) - set(jobs))] if number]
    for job in jobs.values():
        problems += _of_one(job, effects.get(job["id"], []), marks.get(job["id"], []))
    moves = Counter((row["old_status"], row["status"], row["step"]) for row in await conn.fetch(HISTORY))
    problems += [f"{count} rows went {move[0]} -> {move[1]} with the fence raised by {move[2]}"
                 for move, count in moves.items() if move not in MOVES]  # fmt: skip
    return problems[:SHOWN]


def _of_one(job: Any, effects: Sequence[int], marks: Sequence[Mark]) -> Iterator[str]:
    failures = sum("crashed" not in entry["error"] for entry in json.loads(job["errors"]))
    name = f"job {job['id']} ({job['kind']}, {job['attempts']} attempts, {job['crashes']} crashes)"
    if job["status"] != "done":
        yield f"{name} is {job['status']}"
    if job["kind"] == INSIDE and effects != [job["fence"]]:
        yield f"{name} wrote {len(effects)} times inside, under the fences {effects}; its last is {job['fence']}"
    if not 1 <= len(marks) <= 1 + job["crashes"] + failures:
        yield f"{name} was started {len(marks)} times"
    if job["attempts"] != 1 + job["crashes"] + failures:
        yield f"{name} has {failures} failures: the sum does not fit"
    if len({mark.fence for mark in marks}) != len(marks):
        yield f"{name} was started twice under one fence"
