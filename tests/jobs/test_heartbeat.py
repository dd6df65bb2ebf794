"""While a job runs its lease is renewed, and a job whose lease is gone is cut."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from app.db import Connection
from app.jobs import Job, Kind
from app.jobs.crew import Crew
from app.jobs.pump import Lane
from app.jobs.queue import Claimed, claim
from app.summary import Summary
from tests.jobs.rows import put, row_of, statuses, tick_once, until


async def test_a_job_that_outlasts_its_lease_keeps_it_and_runs_once(conn, services):
    ran = []

    async def slow(job: Job) -> None:
        ran.append(job.id)
        first = (await row_of(conn, job.id))["locked_until"]

        async def is_renewed() -> bool:
            return bool((await row_of(conn, job.id))["locked_until"] != first)

        await until(is_renewed)

    made = services({"toy": Kind(slow)}, lease_seconds=1)
    (job_id,) = await put(conn)

    first, second = await asyncio.gather(tick_once(made), tick_once(made))

    assert ran == [job_id]
    assert first["jobs"]["done"] + second["jobs"]["done"] == 1
    assert first["rescued"] + second["rescued"] == 0


async def test_a_job_whose_lease_another_has_taken_is_cut_and_writes_nothing(conn, services):
    cut = []

    async def toy(job: Job) -> None:
        await conn.execute("UPDATE jobs SET fence = fence + 1")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cut.append(job.id)
            raise

    (job_id,) = await put(conn)

    summary = await tick_once(services({"toy": Kind(toy)}, lease_seconds=1))

    row = await row_of(conn, job_id)
    assert cut == [job_id]
    assert summary["jobs"]["lost"] == 1
    assert (row["status"], row["fence"], row["errors"]) == ("running", 2, [])


async def test_a_deleted_job_is_cut(conn, services):
    async def toy(job: Job) -> None:
        await conn.execute("DELETE FROM jobs")
        await asyncio.Event().wait()

    await put(conn)

    summary = await tick_once(services({"toy": Kind(toy)}, lease_seconds=1))

    assert summary["jobs"]["lost"] == 1
    assert summary["errors"] == []


async def test_a_job_whose_lease_is_lost_while_it_waits_never_starts(conn, services):
    first, second = await put(conn, 2)
    started: list[int] = []

    async def toy(job: Job) -> None:
        started.append(job.id)
        await conn.execute("UPDATE jobs SET fence = fence + 1 WHERE id = $1", second)
        await until(_always(lambda: crew.runs[second].cut is not None))

    async def claim_both(connection: Connection, kinds: Sequence[str], _limit: int) -> list[Claimed]:
        return await claim(connection, ["default"], kinds, 2, 1.0)

    made, summary = services({"toy": Kind(toy)}, lease_seconds=1), Summary("test")
    async with Crew(made, made.kinds, made.database.link(), None).at_work() as crew:
        await Lane(crew, claim_both, summary, 1, 2).pump()

    assert started == [first]
    assert summary.jobs == {"claimed": 2, "done": 1, "lost": 1}
    assert await statuses(conn) == {"done": 1, "running": 1}


def _always(is_so: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
    async def ask() -> bool:
        return is_so()

    return ask
