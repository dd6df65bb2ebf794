"""A process that stood still for longer than its lease, and wakes, writes nothing over what another has done since.

Five processes at a time are stopped somewhere in their tick for twice their lease. This one takes their jobs over and
finishes them; then they wake and go on as if nothing had happened.
"""

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest

from app import tick
from app.jobs import NewJob, enqueue_many
from app.tick import Budget
from tests.evidence.kills.checker import check, last_ticks, leases_are_over
from tests.evidence.kills.deeds import INSIDE, OUTSIDE, TABLES, read_marks
from tests.evidence.kills.nursery import Nursery, last_words, nursery
from tests.evidence.kills.roles import make_services, make_settings
from tests.evidence.kills.seeds import Chance, draw

LEASE_SECONDS = 0.15
AT_ONCE, JOBS_EACH = 5, 4
LONGEST_TICK = 0.06
SETTINGS = {"tick_jobs": JOBS_EACH, "job_concurrency": 2, "tick_budget_seconds": 5}
HELD = "SELECT id FROM jobs WHERE status = 'running'"
FINISHED = "SELECT id, status, fence, attempts, crashes, finished_at, errors::text FROM jobs WHERE status = 'done'"


async def _freeze_some(dsn: str, conn: Any, born: Nursery, chance: Chance, file: Path) -> tuple[list[int], int]:
    """Play one round; return the jobs it enqueued and how many of them a frozen process lost to this one."""
    jobs = [
        NewJob((INSIDE, OUTSIDE)[number % 2], {"file": str(file), "seconds": chance.uniform(0.02, 0.10)})
        for number in range(AT_ONCE * JOBS_EACH)
    ]
    enqueued = [job.id for job in await enqueue_many(conn, jobs)]
    services = make_services(make_settings(dsn, 60))
    asked = {"dsn": dsn, "lease": LEASE_SECONDS, "settings": SETTINGS, "log": f"{file}.log"}
    zombies = [await born.fork("tick once", **asked) for _ in range(AT_ONCE)]
    await _first_mark(file, enqueued)
    await asyncio.sleep(chance.uniform(0, LONGEST_TICK))
    for zombie in zombies:
        zombie.signal(signal.SIGSTOP)
    held = {row["id"] for row in await conn.fetch(HELD)}

    await asyncio.sleep(2 * LEASE_SECONDS)
    await tick.run(services, Budget.from_settings(services.settings), "heir")

    before = await conn.fetch(FINISHED)
    for zombie in zombies:
        zombie.signal(signal.SIGCONT)
    codes = [await zombie.wait() for zombie in zombies]
    after = {row["id"]: row for row in await conn.fetch(FINISHED)}
    await services.database.close()
    assert codes == [0] * AT_ONCE, last_words(f"{file}.log")
    assert [row for row in before if after[row["id"]] != row] == [], chance
    return enqueued, len(held & {row["id"] for row in before})


async def _first_mark(file: Path, jobs: list[int]) -> None:
    """Wait until one of *jobs* has been started."""
    async with asyncio.timeout(10):
        while not read_marks(file).keys() & set(jobs):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.002)


async def _play(dsn: str, conn: Any, folder: Path, frozen: int) -> None:
    chance, file = draw(), folder / "marks"
    await conn.execute(TABLES)
    enqueued, taken_over = [], 0
    async with nursery() as born:
        for _ in range(frozen // AT_ONCE):
            added, taken = await _freeze_some(dsn, conn, born, chance, file)
            enqueued += added
            taken_over += taken
    await leases_are_over(conn)
    services = make_services(make_settings(dsn, 60))

    problems = await last_ticks(conn, services)

    await services.database.close()
    print(f"{frozen} frozen processes, {taken_over} of their jobs done by another before they woke")  # noqa: T201 - the figure of the nightly form
    assert [*problems, *await check(conn, enqueued, read_marks(file))] == [], chance
    assert taken_over > 0, "nothing was held when the processes stopped: this was no evidence"


async def test_10_frozen_processes_write_nothing_after_their_lease(dsn: str, conn: Any, tmp_path: Path) -> None:
    await _play(dsn, conn, tmp_path, 10)


@pytest.mark.nightly
async def test_500_frozen_processes_write_nothing_after_their_lease(dsn: str, conn: Any, tmp_path: Path) -> None:
    await _play(dsn, conn, tmp_path, 500)
