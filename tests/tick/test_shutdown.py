"""A process that is told to stop claims no more, hands back what it has not begun, and gives the rest a grace."""

import asyncio
import time

from app.jobs import Job, Kind, NewJob, enqueue, enqueue_many
from tests.bookings.shelf import HOUR, book
from tests.tick.ticking import still_running, tick_once


async def test_what_was_claimed_and_not_begun_is_handed_back_without_an_attempt(services, conn):
    async def work(job: Job) -> None:
        await asyncio.sleep(0.001)
        if job.payload["n"] == 30:
            job.services.stopping.set()

    made = services({"work.short": Kind(work)}, job_concurrency=3, tick_jobs=1000)
    await enqueue_many(conn, [NewJob("work.short", {"n": n}) for n in range(500)])

    summary = await tick_once(made)

    rows = await conn.fetch("SELECT status, max(attempts) AS attempts, count(*) FROM jobs GROUP BY status")
    found = {row["status"]: (row["attempts"], row["count"]) for row in rows}
    assert summary["stopped_by"] == "shutdown"
    assert summary["jobs"]["released"] > 0
    assert summary["jobs"]["claimed"] == summary["jobs"]["done"] + summary["jobs"]["released"]
    assert found == {"done": (1, summary["jobs"]["done"]), "ready": (0, 500 - summary["jobs"]["done"])}


async def test_what_runs_may_end_within_the_grace(services, conn):
    async def work(job: Job) -> None:
        job.services.stopping.set()
        await asyncio.sleep(0.3)

    await enqueue(conn, "work.short")

    summary = await tick_once(services({"work.short": Kind(work)}))

    assert (summary["jobs"]["done"], summary["stopped_by"]) == (1, "shutdown")


async def test_what_does_not_end_within_the_grace_is_handed_back(services, conn):
    async def work(job: Job) -> None:
        job.services.stopping.set()
        await asyncio.Event().wait()

    await enqueue(conn, "work.endless")

    started = time.monotonic()
    summary = await tick_once(services({"work.endless": Kind(work, timeout=20)}))
    took = time.monotonic() - started

    assert took < 6
    assert (summary["jobs"]["released"], summary["stopped_by"]) == (1, "shutdown")
    assert tuple(await conn.fetchrow("SELECT status, attempts FROM jobs")) == ("ready", 0)
    assert still_running() == []


async def test_a_process_that_is_stopping_already_claims_nothing(services, conn):
    async def note(job: Job) -> None:
        """Take note."""

    made = services({"note.taken": Kind(note)})
    made.stopping.set()
    await enqueue(conn, "note.taken")
    await book(conn, "b", HOUR)

    summary = await tick_once(made)

    assert summary["stopped_by"] == "shutdown"
    assert (summary["jobs"]["claimed"], summary["reminders"]["claimed"]) == (0, 0)


async def test_an_empty_tick_of_a_stopping_process_says_so(services):
    made = services()
    made.stopping.set()

    summary = await tick_once(made)

    assert summary["stopped_by"] == "shutdown"


async def test_a_cancelled_tick_leaves_its_jobs_to_their_leases(services, conn):
    started = asyncio.Event()

    async def work(job: Job) -> None:
        started.set()
        await asyncio.Event().wait()

    made = services({"work.endless": Kind(work)})
    await enqueue(conn, "work.endless")
    ticking = asyncio.create_task(tick_once(made))
    await started.wait()

    ticking.cancel()
    await asyncio.wait({ticking})

    assert ticking.cancelled()
    assert await conn.fetchval("SELECT status FROM jobs") == "running"
