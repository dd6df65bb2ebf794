"""kill -9 at any moment costs time and nothing else: no job is lost, and what is written inside is written once.

Three processes tick with a lease of 150 ms; every 5 to 40 ms one of them is killed and another takes its place.
MAX_CRASHES is at its limit of 100: a job that is innocent, but there when its process is killed, must not be buried.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from app.jobs import NewJob, enqueue_many
from tests.evidence.kills.checker import check, last_ticks, leases_are_over
from tests.evidence.kills.deeds import INSIDE, OUTSIDE, TABLES, Mark, read_marks
from tests.evidence.kills.nursery import Child, last_words, nursery
from tests.evidence.kills.roles import make_services, make_settings
from tests.evidence.kills.seeds import Chance, draw

WORKERS = 3
LEASE_SECONDS = 0.15
PAUSE_SECONDS = (0.005, 0.040)
STOCK, LOOK_EVERY = 12, 4
SETTINGS = {"tick_jobs": 15, "job_concurrency": 4, "tick_budget_seconds": 5}
READY = "SELECT count(*) FROM jobs WHERE status = 'ready' AND crashes = 0"


async def _stock_up(conn: Any, chance: Chance, file: Path) -> list[int]:
    """Keep a few jobs waiting, never so many that those which have crashed are left for later."""
    missing = STOCK - await conn.fetchval(READY)
    jobs = [
        NewJob(chance.choice((INSIDE, OUTSIDE)), {"file": str(file), "seconds": round(chance.uniform(0, 0.008), 4)})
        for _ in range(missing)
    ]
    return [job.id for job in await enqueue_many(conn, jobs)]


async def _kill_again_and_again(
    conn: Any, bear: Callable[[], Awaitable[Child]], chance: Chance, kills: int, file: Path
) -> tuple[list[int], set[int]]:
    """Kill so often; return the jobs that were enqueued meanwhile and the processes that were killed."""
    enqueued: list[int] = []
    living, killed = [await bear() for _ in range(WORKERS)], set()
    for number in range(kills):
        if number % LOOK_EVERY == 0:
            enqueued += await _stock_up(conn, chance, file)
        await asyncio.sleep(chance.uniform(*PAUSE_SECONDS))
        victim = living.pop(chance.randrange(WORKERS))
        victim.signal(signal.SIGKILL)
        killed.add(victim.pid)
        newborn, status = await asyncio.gather(bear(), victim.wait())
        assert status == -signal.SIGKILL, last_words(f"{file}.log")
        living.append(newborn)
    for child in living:
        child.signal(signal.SIGKILL)
        killed.add(child.pid)
        await child.wait()
    return enqueued, killed


def _caught_at_work(jobs: list[Any], marks: dict[int, list[Mark]], killed: set[int]) -> int:
    """Count the runs that a kill cut short: of a process that was killed, under a fence that is not the last."""
    last = {job["id"]: job["fence"] for job in jobs}
    return sum(mark.process in killed and mark.fence < last[job] for job, found in marks.items() for mark in found)


async def _play(dsn: str, conn: Any, folder: Path, kills: int) -> None:
    chance, file = draw(), folder / "marks"
    await conn.execute(TABLES)
    async with nursery() as born:
        asked = {"dsn": dsn, "lease": LEASE_SECONDS, "settings": SETTINGS, "log": f"{file}.log"}
        bear = partial(born.fork, "tick on", **asked)
        enqueued, killed = await _kill_again_and_again(conn, bear, chance, kills, file)
    await leases_are_over(conn)
    services = make_services(make_settings(dsn, 60, tick_jobs=5000))

    problems = await last_ticks(conn, services)

    await services.database.close()
    marks = read_marks(file)
    problems += await check(conn, enqueued, marks)
    jobs = await conn.fetch("SELECT id, fence, crashes FROM jobs")
    caught, crashes = _caught_at_work(jobs, marks, killed), sum(job["crashes"] for job in jobs)
    worst = max(job["crashes"] for job in jobs)
    print(f"{kills} kills, {len(jobs)} jobs, {caught} runs cut short, {crashes} crashes, at most {worst} of one job")  # noqa: T201 - the figure of the nightly form
    assert problems == [], chance
    assert caught > kills / 10, f"the kills hit too few jobs to be evidence: {caught} of {kills}"


async def test_300_kills_lose_no_job_and_do_nothing_twice_inside(dsn: str, conn: Any, tmp_path: Path) -> None:
    await _play(dsn, conn, tmp_path, 300)


@pytest.mark.nightly
async def test_10_000_kills_lose_no_job_and_do_nothing_twice_inside(dsn: str, conn: Any, tmp_path: Path) -> None:
    await _play(dsn, conn, tmp_path, 10_000)
