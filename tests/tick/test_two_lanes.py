"""Reminders and jobs run side by side, each with its own batch: neither can starve the other."""

import asyncio
import time
from datetime import timedelta

from app.jobs import Job, Kind, NewJob, enqueue_many
from tests.bookings.shelf import HOUR, book, book_many
from tests.handlers.provider import run_provider
from tests.tick.ticking import outbox, tick_once

BUDGET = 3.0


async def dawdle(job: Job) -> None:
    """Work for 300 ms."""
    await asyncio.sleep(0.3)


async def test_a_reminder_overtakes_a_thousand_slow_jobs(services, conn):
    made = services({"work.slow": Kind(dawdle, timeout=1)}, tick_jobs=1000)
    await enqueue_many(conn, [NewJob("work.slow") for _ in range(1000)])
    await book(conn, "b", timedelta(minutes=20))

    started = time.monotonic()
    summary = await tick_once(made, seconds=BUDGET)
    took = time.monotonic() - started

    assert took < BUDGET + 1
    assert summary["reminders"]["sent"] == 1
    assert len(outbox(made.settings)) == 1
    assert summary["stopped_by"] == "deadline"
    assert summary["more_due"] is True
    assert summary["jobs"]["done"] >= 50
    assert summary["jobs"]["retried"] == 0


async def test_slow_reminders_do_not_hold_up_the_jobs(services, conn):
    async def note(job: Job) -> None:
        """Take note."""

    async with run_provider(seconds=0.3) as provider:
        made = services({"note.taken": Kind(note, timeout=1)}, **provider.settings)
        await book_many(conn, 300)
        await enqueue_many(conn, [NewJob("note.taken") for _ in range(100)])

        summary = await tick_once(made, seconds=2)

    assert summary["jobs"]["done"] == 100
    assert summary["reminders"]["sent"] > 0


async def test_each_lane_has_a_batch_of_its_own(services, conn):
    async def note(job: Job) -> None:
        """Take note."""

    made = services({"note.taken": Kind(note)})
    await book_many(conn, 20)
    await enqueue_many(conn, [NewJob("note.taken") for _ in range(30)])

    summary = await tick_once(made, jobs=7, reminders=3)

    assert (summary["jobs"]["claimed"], summary["reminders"]["claimed"]) == (7, 3)
    assert (summary["stopped_by"], summary["more_due"]) == ("batch", True)


async def test_a_batch_of_no_jobs_runs_reminders_only(services, conn):
    async def note(job: Job) -> None:
        """Take note."""

    made = services({"note.taken": Kind(note)})
    await book(conn, "b", HOUR)
    await enqueue_many(conn, [NewJob("note.taken")])

    summary = await tick_once(made, jobs=0)

    assert (summary["jobs"]["claimed"], summary["reminders"]["sent"]) == (0, 1)
    assert summary["backlog"]["due"] == 1


async def test_a_batch_of_no_reminders_runs_jobs_only(services, conn):
    async def note(job: Job) -> None:
        """Take note."""

    made = services({"note.taken": Kind(note)})
    await book(conn, "b", HOUR)
    await enqueue_many(conn, [NewJob("note.taken")])

    summary = await tick_once(made, reminders=0)

    assert (summary["jobs"]["done"], summary["reminders"]["planned"]) == (1, 0)


async def test_jobs_that_always_fail_do_not_starve_those_behind_them(services, conn):
    async def work(job: Job) -> None:
        if job.payload["n"] < 150:
            raise ValueError

    made = services({"number.tried": Kind(work)})
    await enqueue_many(conn, [NewJob("number.tried", {"n": n}) for n in range(300)])

    for _ in range(3):
        await tick_once(made)
        await conn.execute("UPDATE jobs SET run_at = now() WHERE status = 'ready' AND attempts > 0")

    done = await conn.fetchval("SELECT count(*) FROM jobs WHERE status = 'done'")
    assert done == 150
