"""The worker is the same pump in a loop: what a tick would do, it does, without a budget."""

import asyncio
import json

import pytest

from app.errors import SchemaBehind
from app.handlers import load_kinds
from app.jobs import Job, Kind, NewJob, enqueue, enqueue_many
from app.worker import work
from tests.bookings.shelf import HOUR, book, end_leases
from tests.tick.ticking import CUT, beside_any_pooler, outbox, until_quiet


class Tally:
    """A kind that counts its runs; `until` waits for so many."""

    def __init__(self) -> None:
        self.runs: list[int] = []
        self._changed = asyncio.Condition()

    async def run(self, job: Job) -> None:
        async with self._changed:
            self.runs.append(job.id)
            self._changed.notify_all()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(10), self._changed:
            await self._changed.wait_for(lambda: len(self.runs) >= count)


NOTHING_DUE = "SELECT count(*) = 0 FROM jobs WHERE status IN ('ready', 'running') AND run_at <= now()"
ALL_RECORDED = "SELECT coalesce(sum((summary->'jobs'->>'done')::int), 0) >= 20 FROM ticks"
AN_ERROR = "SELECT count(*) > 0 FROM ticks WHERE summary->'errors' <> '[]'"
ERRORS = "SELECT summary->>'errors' FROM ticks WHERE summary->'errors' <> '[]'"


async def until(conn, question: str) -> None:
    """Wait until the database answers *question* with true."""
    async with asyncio.timeout(10):
        while not await conn.fetchval(question):  # noqa: ASYNC110 - a row that the worker writes sets no event
            await asyncio.sleep(0.02)


async def test_jobs_and_reminders_are_run_as_they_come(services, conn, working):
    tally = Tally()
    made = services({"note.taken": Kind(tally.run)})
    await book(conn, "b", HOUR)

    async with working(made):
        await enqueue_many(conn, [NewJob("note.taken") for _ in range(250)])
        await tally.until(250)
        await enqueue(conn, "note.taken")
        await tally.until(251)
        await until(conn, NOTHING_DUE)

    assert len(set(tally.runs)) == 251
    assert await conn.fetchval("SELECT count(*) FROM jobs WHERE status <> 'done'") == 0
    assert len(outbox(made.settings)) == 1


async def test_it_leaves_the_ticks_record_behind(services, conn, working):
    tally = Tally()
    made = services({"note.taken": Kind(tally.run)})

    async with working(made):
        await enqueue_many(conn, [NewJob("note.taken") for _ in range(20)])
        await tally.until(20)
        await until(conn, ALL_RECORDED)

    sources = await conn.fetch("SELECT DISTINCT source FROM ticks")
    assert [row["source"] for row in sources] == ["worker"]


async def test_it_goes_on_when_its_connections_are_cut(services, dsn, server, working):
    tally = Tally()
    made = services({"note.taken": Kind(tally.run)})

    async with beside_any_pooler(server, dsn) as direct, working(made) as task:
        for count in range(1, 5):
            await enqueue(direct, "note.taken")
            await tally.until(count)
            await direct.execute(CUT)
        await enqueue(direct, "note.taken")
        await tally.until(5)
        assert not task.done()


async def test_a_suspect_runs_with_no_neighbour(services, conn, working):
    running, neighbours = 0, []

    async def work_on(job: Job) -> None:
        nonlocal running
        running += 1
        await asyncio.sleep(0.005)
        if job.crashes:
            neighbours.append(running - 1)
        running -= 1

    made = services({"work.odd": Kind(work_on)})
    await enqueue_many(conn, [NewJob("work.odd") for _ in range(3)])
    await conn.execute("UPDATE jobs SET status = 'running', locked_until = now() - interval '1 s'")
    await enqueue_many(conn, [NewJob("work.odd") for _ in range(400)])

    async with working(made):
        await until(conn, NOTHING_DUE)

    assert neighbours == [0, 0, 0]
    assert await conn.fetchval("SELECT count(*) FROM jobs WHERE status = 'done'") == 403


async def test_a_busy_worker_still_runs_its_suspects(services, conn, working):
    enough = asyncio.Event()

    async def work_on(job: Job) -> None:
        if job.crashes:
            enough.set()
        elif not enough.is_set():
            await enqueue_again(job)

    async def enqueue_again(job: Job) -> None:
        async with job.services.database.acquire() as connection:
            await enqueue(connection, "work.endless")

    made = services({"work.endless": Kind(work_on)}, tick_jobs=5)
    await enqueue_many(conn, [NewJob("work.endless") for _ in range(20)])
    await conn.execute("UPDATE jobs SET crashes = 1 WHERE id = (SELECT max(id) FROM jobs)")

    async with working(made), asyncio.timeout(10):
        await enough.wait()

    assert await conn.fetchval("SELECT status FROM jobs WHERE crashes = 1") == "done"


async def test_a_timeout_over_the_budget_runs_its_time(services, conn, working, settings):
    tally = Tally()
    chosen = settings(tick_budget_seconds=1)
    made = services({"film.cut": Kind(tally.run, timeout=3600)} | load_kinds(chosen), tick_budget_seconds=1)
    await enqueue(conn, "film.cut")

    async with working(made):
        await tally.until(1)
        await until(conn, NOTHING_DUE)

    assert await conn.fetchval("SELECT status FROM jobs") == "done"


async def test_what_another_process_left_is_rescued(services, conn, working):
    tally = Tally()
    made = services({"note.taken": Kind(tally.run)})
    await enqueue(conn, "note.taken")
    await conn.execute("UPDATE jobs SET status = 'running', attempts = 1, locked_until = now() + interval '1 hour'")

    async with working(made):
        await end_leases(conn)
        await tally.until(1)
        await until(conn, NOTHING_DUE)

    assert tuple(await conn.fetchrow("SELECT status, attempts, crashes FROM jobs")) == ("done", 2, 1)


async def test_a_schema_that_is_behind_ends_it_and_leaves_nothing_running(services, conn):
    await conn.execute("ALTER TABLE ticks RENAME TO away")

    with pytest.raises(SchemaBehind):
        async with asyncio.timeout(10):
            await work(services())

    await until_quiet()


async def test_a_job_left_behind_is_told_in_the_record(services, conn, working):
    release, ended = asyncio.Event(), asyncio.Event()

    async def stubborn(job: Job) -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        ended.set()

    made = services({"work.stubborn": Kind(stubborn, timeout=0.1)})
    await enqueue(conn, "work.stubborn")

    async with working(made):
        await until(conn, AN_ERROR)

    assert "left behind" in json.loads(await conn.fetchval(ERRORS))[0]["error"]
    release.set()
    await ended.wait()
