"""The database's own clock jumps while jobs run: an hour on, two hours back. The fence decides, not the time.

tick, tick, tick side by side -> some handler moves the clock -> leases are over, or far ahead -> checked at the end
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from app.jobs import Job, Kind, NewJob, enqueue_many
from app.jobs.services import Services
from tests.evidence.clocks.faked import Clock
from tests.tick.ticking import tick_once

SEED = 400
JOBS, JUMPS = 60, 12
NIGHTLY_JUMPS = 100
HOURS = (0, 1, -1, 3, 1)  # from the real time: +1 h, then 2 h back, and on
EFFECTS = "CREATE TABLE effects (job_id bigint)"
EFFECT = "INSERT INTO effects (job_id) VALUES ($1)"
TO_NOW = """
    UPDATE jobs
    SET run_at = least(run_at, now()),
        locked_until = CASE WHEN locked_until IS NOT NULL THEN least(locked_until, now()) END
"""
ROWS = "SELECT status, attempts, crashes, fence FROM jobs"


def kinds(clock: Clock, chance: random.Random, runs: Counter[int]) -> dict[str, Kind]:
    """Return a kind whose effect is a row, committed with its end, and one that moves the clock first."""

    async def effect(job: Job) -> None:
        runs[job.id] += 1
        await asyncio.sleep(0)
        async with job.completing() as connection:
            await connection.execute(EFFECT, job.id)

    async def jump(job: Job) -> None:
        clock.move(timedelta(hours=chance.choice(HOURS)))
        await effect(job)

    return {"effect": Kind(effect), "jump": Kind(jump)}


@pytest.mark.parametrize(
    "jumps", [pytest.param(JUMPS, id="short"), pytest.param(NIGHTLY_JUMPS, id="nightly", marks=pytest.mark.nightly)]
)
async def test_jumps_of_the_database_s_clock_lose_nothing_and_repeat_no_effect(
    clock: Clock, clocked: Any, clocked_services: Callable[..., Services], jumps: int
) -> None:
    chance, runs = random.Random(SEED), Counter[int]()  # noqa: S311 - a replay needs the same numbers
    services = clocked_services(kinds(clock, chance, runs), max_crashes=100, lease_seconds=1)
    await clocked.execute(EFFECTS)
    names = ["effect"] * JOBS + ["jump"] * jumps
    chance.shuffle(names)
    await enqueue_many(clocked, [NewJob(name) for name in names])

    for _ in range(200):
        await asyncio.gather(*(tick_once(services, jobs=7) for _ in range(3)))
        await clocked.execute(TO_NOW)  # what waits for an hour that the clock has left behind again
        if await clocked.fetchval("SELECT bool_and(status = 'done') FROM jobs"):
            break

    rows = [tuple(row.values()) for row in await clocked.fetch(ROWS)]
    assert {row[0] for row in rows} == {"done"}, SEED
    assert await clocked.fetchval("SELECT count(*) = count(DISTINCT job_id) FROM effects"), SEED
    assert await clocked.fetchval("SELECT count(*) FROM effects") == len(names), SEED
    assert all(fence == attempts and attempts <= crashes + 1 for _, attempts, crashes, fence in rows), SEED
    assert runs.total() <= len(names) + sum(crashes for _, _, crashes, _ in rows), SEED


async def test_a_lease_is_only_ever_as_long_as_asked_by_the_clock_that_judges_it(
    clock: Clock, clocked: Any, clocked_services: Callable[..., Services]
) -> None:
    seen: list[float] = []

    async def look(_job: Job) -> None:
        seen.append(await clocked.fetchval("SELECT extract(epoch FROM locked_until - now())::float8 FROM jobs"))

    services = clocked_services({"look": Kind(look)}, lease_seconds=60)
    for hours in (0, 9_600, -9_600):
        clock.move(timedelta(hours=hours))
        await clocked.execute("TRUNCATE jobs")
        await enqueue_many(clocked, [NewJob("look")])
        await tick_once(services)

    assert len(seen) == 3
    assert all(50 < left <= 60 for left in seen)
