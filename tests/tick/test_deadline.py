"""The deadline is a promise: the answer comes within the budget and a second, whatever a handler does."""

import asyncio
import threading
import time
from collections.abc import Awaitable
from typing import Any

import pytest

from app.jobs import Job, Kind, NewJob, Steps, enqueue, enqueue_many
from tests.bookings.shelf import end_leases
from tests.tick.ticking import still_running, tick_once


async def timed(ticking: Awaitable[dict[str, Any]]) -> tuple[dict[str, Any], float]:
    """Return a tick's summary and how long it took."""
    started = time.monotonic()
    summary = await ticking
    return summary, time.monotonic() - started


async def test_a_handler_that_ignores_its_cancellation_is_left_behind(services, conn):
    release, ended = asyncio.Event(), asyncio.Event()

    async def stubborn(job: Job) -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        ended.set()

    made = services({"work.stubborn": Kind(stubborn, timeout=0.3)})
    await enqueue(conn, "work.stubborn")

    summary, took = await timed(tick_once(made, seconds=1))

    assert took < 2
    assert summary["jobs"]["lost"] == 1
    (error,) = summary["errors"]
    assert error["section"] == "run"
    assert "left behind" in error["error"]
    assert await conn.fetchval("SELECT status FROM jobs") == "running"
    release.set()
    await ended.wait()


async def test_a_thread_that_does_not_end_is_left_behind(services, conn):
    release, ended = threading.Event(), threading.Event()

    def stubborn(job: Job) -> None:
        release.wait()
        ended.set()

    made = services({"work.stubborn": Kind(stubborn, timeout=0.3)})
    await enqueue(conn, "work.stubborn")

    summary, took = await timed(tick_once(made, seconds=1))

    assert took < 2
    assert summary["jobs"]["lost"] == 1
    assert await conn.fetchval("SELECT status FROM jobs") == "running"
    release.set()
    assert await asyncio.to_thread(ended.wait, 5)


async def test_what_was_left_behind_comes_back_when_its_lease_is_over(services, conn):
    runs, release = [], asyncio.Event()

    async def stubborn_once(job: Job) -> None:
        runs.append(job.attempts)
        while len(runs) == 1 and not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    made = services({"work.stubborn": Kind(stubborn_once, timeout=0.3)})
    await enqueue(conn, "work.stubborn")
    await tick_once(made, seconds=1)
    await end_leases(conn)

    summary = await tick_once(made)

    release.set()
    assert (summary["rescued"], summary["jobs"]["done"]) == (1, 1)
    assert runs == [1, 2]


async def test_at_its_timeout_a_handler_is_cancelled_and_the_attempt_counts(services, conn):
    async def slow(job: Job) -> None:
        await asyncio.Event().wait()

    made = services({"work.slow": Kind(slow, timeout=0.2, retry=Steps(60))})
    await enqueue(conn, "work.slow")

    summary, took = await timed(tick_once(made, seconds=1))

    assert took < 1
    assert summary["jobs"]["retried"] == 1
    assert tuple(await conn.fetchrow("SELECT status, attempts, last_error FROM jobs")) == (
        "ready",
        1,
        "TimeoutError: it ran longer than 0.2 s",
    )


async def test_a_job_starts_only_if_its_timeout_still_fits(services, conn):
    ran = []

    async def note(job: Job) -> None:
        ran.append(job.kind)

    made = services({"work.long": Kind(note, timeout=20), "work.short": Kind(note, timeout=1)})
    await enqueue_many(conn, [NewJob("work.long"), NewJob("work.short")])

    summary = await tick_once(made, seconds=5)

    assert ran == ["work.short"]
    assert summary["jobs"]["claimed"] == 1
    assert summary["more_due"] is True
    assert await conn.fetchval("SELECT attempts FROM jobs WHERE kind = 'work.long'") == 0


async def test_claims_that_no_longer_fit_are_handed_back_without_an_attempt(services, conn):
    async def work(job: Job) -> None:
        await asyncio.sleep(0.05)

    made = services({"work.short": Kind(work, timeout=0.5)}, job_concurrency=5, tick_jobs=1000)
    await enqueue_many(conn, [NewJob("work.short") for _ in range(400)])

    summary, took = await timed(tick_once(made, seconds=1))

    attempts = await conn.fetchval("SELECT coalesce(max(attempts), 0) FROM jobs WHERE status = 'ready'")
    assert took < 2
    assert summary["stopped_by"] == "deadline"
    assert attempts == 0
    assert summary["jobs"]["done"] + summary["jobs"]["released"] == summary["jobs"]["claimed"]
    assert await conn.fetchval("SELECT count(*) FROM jobs WHERE status = 'running'") == 0


async def test_all_is_settled_before_the_answer_and_nothing_runs_after_it(services, conn):
    async def work(job: Job) -> None:
        await asyncio.sleep(0.01)

    made = services({"work.short": Kind(work)})
    await enqueue_many(conn, [NewJob("work.short") for _ in range(100)])

    summary = await tick_once(made)

    assert still_running() == []
    assert await conn.fetchval("SELECT count(*) FROM jobs WHERE status = 'done'") == 100
    assert summary["jobs"]["done"] == 100
    assert summary["backlog"]["due"] == 0


@pytest.mark.parametrize("seconds", [1, 1.5])
async def test_a_tick_full_of_slow_jobs_keeps_to_its_budget(services, conn, seconds):
    async def slow(job: Job) -> None:
        await asyncio.Event().wait()

    made = services({"work.slow": Kind(slow, timeout=0.9)})
    await enqueue_many(conn, [NewJob("work.slow") for _ in range(50)])

    summary, took = await timed(tick_once(made, seconds=seconds))

    assert took < seconds + 1
    assert summary["errors"] == []
    assert summary["jobs"]["retried"] > 0


async def test_a_blocked_loop_is_not_held_against_the_neighbours(services, conn):
    def blocking(job: Job) -> None:
        time.sleep(0.2)  # a plain function has a thread of its own

    async def note(job: Job) -> None:
        """Take note."""

    made = services({"work.blocking": Kind(blocking), "note.taken": Kind(note)})
    await enqueue_many(conn, [NewJob("work.blocking")] * 5 + [NewJob("note.taken")] * 20)

    summary, took = await timed(tick_once(made))

    assert summary["jobs"]["done"] == 25
    assert took < 1
