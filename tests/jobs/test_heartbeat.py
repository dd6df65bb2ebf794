"""While a job runs its lease is renewed, and a job whose lease is gone is cut."""

import asyncio

from app.jobs import Job, Kind
from tests.jobs.rows import put, row_of, tick_once, until


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
