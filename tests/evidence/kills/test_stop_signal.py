"""SIGTERM somewhere in a tick: what runs may end, what was not begun spends no attempt, and nothing is lost."""

import asyncio
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from app.jobs import NewJob, enqueue_many
from tests.evidence.kills.checker import check, last_ticks
from tests.evidence.kills.deeds import ENDLESS, INSIDE, OUTSIDE, TABLES, read_marks
from tests.evidence.kills.nursery import Nursery, last_words, nursery
from tests.evidence.kills.roles import make_services, make_settings
from tests.evidence.kills.seeds import Chance, draw

LEASE_SECONDS = 60.0
LIMIT_SECONDS = 9.0
JOBS_EACH = 12
AT_ONCE = 4
LONGEST_TICK = 0.12
LATE_SHARE = 0.7
ENDLESS_SHARE = 10
SETTINGS = {"tick_jobs": 10, "job_concurrency": 3, "tick_budget_seconds": 25}
UNFAIR = """
    SELECT id, status, attempts, crashes
    FROM jobs
    WHERE status = 'running' OR crashes > 0 OR (status = 'ready' AND attempts > 0)
"""
LET_GO = "UPDATE jobs SET kind = $1 WHERE kind = $2 AND status = 'ready'"


async def _stop_one(dsn: str, born: Nursery, file: Path, delay: float, *, is_late: bool) -> float:
    """Stop a tick after *delay* seconds, counted from its first job if *is_late*; return how long it took to end."""
    asked = {"dsn": dsn, "lease": LEASE_SECONDS, "settings": SETTINGS, "log": f"{file}.log"}
    child = await born.fork("tick once", **asked)
    while is_late and child.is_alive and child.pid not in _processes(file):  # noqa: ASYNC110 - the child writes it
        await asyncio.sleep(0.005)
    await asyncio.sleep(delay)
    began = time.monotonic()
    child.signal(signal.SIGTERM)
    code = await child.wait()
    # One that had not yet put its handler in place dies of the signal, as any program does: it holds nothing then.
    assert code in {0, -signal.SIGTERM}, last_words(f"{file}.log")
    return time.monotonic() - began


def _processes(file: Path) -> set[int]:
    return {mark.process for found in read_marks(file).values() for mark in found}


def _jobs(chance: Chance, file: Path, *, has_endless: bool) -> list[NewJob]:
    """Return short jobs, and one that only ends when it is told to."""
    jobs = [
        NewJob(chance.choice((INSIDE, OUTSIDE)), {"file": str(file), "seconds": chance.uniform(0, 0.03)})
        for _ in range(AT_ONCE * JOBS_EACH)
    ]
    return [NewJob(ENDLESS, {"file": str(file), "seconds": 0.0}), *jobs] if has_endless else jobs


async def _play(dsn: str, conn: Any, folder: Path, stops: int) -> None:
    chance, file = draw(), folder / "marks"
    await conn.execute(TABLES)
    enqueued, took, unfair = [], [], []
    async with nursery() as born:
        for number in range(stops // AT_ONCE):
            jobs = _jobs(chance, file, has_endless=number % ENDLESS_SHARE == 0)
            enqueued += [job.id for job in await enqueue_many(conn, jobs)]
            moments = [(chance.uniform(0, LONGEST_TICK), chance.random() < LATE_SHARE) for _ in range(AT_ONCE)]
            stopping = (_stop_one(dsn, born, file, delay, is_late=is_late) for delay, is_late in moments)
            took += await asyncio.gather(*stopping)
            unfair += await conn.fetch(UNFAIR)
            await conn.execute(LET_GO, OUTSIDE, ENDLESS)
    started = set(read_marks(file))
    finished = {row["id"] for row in await conn.fetch("SELECT id FROM jobs WHERE status = 'done'")}
    assert unfair == [], chance
    assert finished <= started, chance
    services = make_services(make_settings(dsn, 60, tick_jobs=10_000))

    problems = await last_ticks(conn, services)

    await services.database.close()
    print(f"{stops} stops, {len(finished)} jobs done by then, the slowest end took {max(took):.1f} s")  # noqa: T201 - the figure of the nightly form
    assert [*problems, *await check(conn, enqueued, await _released(conn, file))] == [], chance
    assert max(took) < LIMIT_SECONDS, chance


async def _released(conn: Any, file: Path) -> dict[int, list[Any]]:
    """Return the marks less those of runs that were cut by the stop: they gave their attempt back."""
    fences = {row["id"]: row["fence"] for row in await conn.fetch("SELECT id, fence FROM jobs")}
    marks = read_marks(file)
    return {job: [mark for mark in found if mark.fence == fences[job]] for job, found in marks.items()}


async def test_20_stops_lose_nothing_and_spend_no_attempt(dsn: str, conn: Any, tmp_path: Path) -> None:
    await _play(dsn, conn, tmp_path, 20)


@pytest.mark.nightly
async def test_1_000_stops_lose_nothing_and_spend_no_attempt(dsn: str, conn: Any, tmp_path: Path) -> None:
    await _play(dsn, conn, tmp_path, 1_000)
