"""A worker that is told to stop claims no more, lets what runs end, and is gone within a bounded time."""

import asyncio
import time
from dataclasses import replace

from structlog.testing import capture_logs

from app.db import Database
from app.jobs import Job, Kind, NewJob, enqueue, enqueue_many
from app.worker import work
from tests.servers import free_port
from tests.tick.black_hole import black_hole
from tests.tick.ticking import until_quiet


async def test_what_runs_ends_and_nothing_more_is_claimed(services, conn, working):
    started = asyncio.Event()

    async def slow(job: Job) -> None:
        started.set()
        await asyncio.sleep(0.3)

    made = services({"work.slow": Kind(slow)}, job_concurrency=2)
    await enqueue_many(conn, [NewJob("work.slow") for _ in range(50)])

    async with working(made):
        await started.wait()

    rows = await conn.fetch("SELECT status, max(attempts) AS attempts, count(*) FROM jobs GROUP BY status")
    found = {row["status"]: (row["attempts"], row["count"]) for row in rows}
    assert found == {"done": (1, 2), "ready": (0, 48)}
    await until_quiet()


async def test_what_does_not_end_is_handed_back_after_the_grace(services, conn):
    started = asyncio.Event()

    async def endless(job: Job) -> None:
        started.set()
        await asyncio.Event().wait()

    made = services({"work.endless": Kind(endless, timeout=3600)})
    await enqueue(conn, "work.endless")
    task = asyncio.create_task(work(made, poll_seconds=0.05))
    await started.wait()

    made.stopping.set()
    began = time.monotonic()
    await task

    assert time.monotonic() - began < 8
    assert tuple(await conn.fetchrow("SELECT status, attempts FROM jobs")) == ("ready", 0)


async def test_a_worker_says_when_it_starts_and_when_it_has_stopped(services, working):
    async def toy(job: Job) -> None:
        """Be done."""

    with capture_logs() as lines:
        async with working(services({"work.toy": Kind(toy)})):
            await asyncio.sleep(0)

    assert (lines[0]["event"], lines[0]["kinds"]) == ("worker.started", ["booking.reminder", "work.toy"])
    assert (lines[-1]["event"], lines[-1]["left_running"]) == ("worker.stopped", 0)


async def test_an_idle_worker_stops_at_once(services):
    made = services()
    task = asyncio.create_task(work(made))
    async with made.database.acquire():
        made.stopping.set()

    began = time.monotonic()
    await task

    assert time.monotonic() - began < 2
    await until_quiet()


async def test_a_database_that_is_away_from_the_start_holds_up_neither_the_start_nor_the_stop(services):
    database = Database(f"postgresql://dormouse@127.0.0.1:{free_port()}/nowhere")
    made = replace(services(), database=database)
    with capture_logs() as lines:
        task = asyncio.create_task(work(made))
        await asyncio.sleep(0.5)
        made.stopping.set()
        began = time.monotonic()
        await task

    assert time.monotonic() - began < 3
    assert [line["event"] for line in lines] == ["worker.started", "worker.stopped"]
    await database.close()
    await until_quiet()


async def test_a_database_that_fell_silent_does_not_hold_up_the_stop(services, conn, dsn, server):
    async def note(job: Job) -> None:
        """Take note."""

    await enqueue(conn, "note.taken")
    async with black_hole(server, trigger=b"SET status = 'done'") as hole:
        database = Database(hole.dsn(dsn))
        made = replace(services({"note.taken": Kind(note)}), database=database)
        task = asyncio.create_task(work(made, poll_seconds=0.05))
        await hole.went_dark()

        made.stopping.set()
        began = time.monotonic()
        await task

        assert time.monotonic() - began < 8
        await database.close()


async def test_a_worker_that_is_cancelled_leaves_nothing_running(services, conn):
    started = asyncio.Event()

    async def endless(job: Job) -> None:
        started.set()
        await asyncio.Event().wait()

    made = services({"work.endless": Kind(endless)})
    await enqueue(conn, "work.endless")
    task = asyncio.create_task(work(made, poll_seconds=0.05))
    await started.wait()

    task.cancel()
    await asyncio.wait({task})

    assert task.cancelled()
    assert await conn.fetchval("SELECT status FROM jobs") == "running"
