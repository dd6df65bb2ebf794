"""A job that runs longer than its kind may is cut and has failed; one that will not be cut holds up nobody."""

import asyncio
import contextlib
import threading
import time

from app.jobs import Job, Kind
from tests.jobs.rows import put, row_of, statuses, tick_once


async def test_a_job_is_cut_at_its_kinds_timeout_and_has_failed(conn, services):
    ends = []

    async def endless(job: Job) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ends.append(time.monotonic())
            raise

    (job_id,) = await put(conn)
    started = time.monotonic()

    summary = await tick_once(services({"toy": Kind(endless, timeout=0.2)}))

    row = await row_of(conn, job_id)
    assert 0.2 <= ends[0] - started < 3
    assert (row["status"], row["attempts"], row["last_error"]) == ("ready", 1, "TimeoutError: it ran longer than 0.2 s")
    assert summary["jobs"]["retried"] == 1


async def test_a_job_may_tidy_up_when_it_is_cut(conn, services):
    async def tidy(job: Job) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)

    (job_id,) = await put(conn)

    await tick_once(services({"toy": Kind(tidy, timeout=0.1)}))

    assert (await row_of(conn, job_id))["last_error"].startswith("TimeoutError")


async def test_a_job_that_finishes_although_it_was_cut_is_done(conn, services):
    async def stubborn(job: Job) -> None:
        with contextlib.suppress(asyncio.CancelledError):  # this is what the test is about
            await asyncio.Event().wait()

    (job_id,) = await put(conn)

    await tick_once(services({"toy": Kind(stubborn, timeout=0.1)}))

    assert (await row_of(conn, job_id))["status"] == "done"


async def test_a_job_that_ignores_its_cancellation_is_left_behind_and_its_neighbours_end(conn, services):
    release = asyncio.Event()

    async def toy(job: Job) -> None:
        while job.payload["n"] == 1 and not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):  # this is what the test is about
                await release.wait()

    ids = await put(conn, 10)
    started = time.monotonic()

    summary = await tick_once(services({"toy": Kind(toy, timeout=0.2)}), seconds=3)

    left = await row_of(conn, ids[0])
    assert time.monotonic() - started < 4
    assert (left["status"], left["attempts"], left["errors"]) == ("running", 1, [])
    assert left["lease"] > 0
    assert (summary["jobs"]["done"], summary["jobs"]["lost"]) == (9, 1)
    assert "ignored its cancellation" in summary["errors"][0]["error"]
    release.set()


async def test_what_a_job_left_behind_does_later_is_written_nowhere(conn, services):
    release, ended = asyncio.Event(), asyncio.Event()

    async def stubborn(job: Job) -> None:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):  # this is what the test is about
                await release.wait()
        ended.set()

    (job_id,) = await put(conn)
    await tick_once(services({"toy": Kind(stubborn, timeout=0.1)}), seconds=3)

    release.set()
    await ended.wait()
    await asyncio.sleep(0)

    assert (await row_of(conn, job_id))["status"] == "running"


async def test_a_plain_function_runs_beside_the_loop(conn, services):
    together = threading.Barrier(5, timeout=20)
    threads = set()

    def toy(job: Job) -> None:
        threads.add(threading.get_ident())
        together.wait()

    await put(conn, 5)

    summary = await tick_once(services({"toy": Kind(toy)}, job_concurrency=5))

    assert summary["jobs"]["done"] == 5
    assert len(threads) == 5
    assert threading.get_ident() not in threads


async def test_a_thread_that_runs_too_long_is_not_settled_before_it_ends(conn, services):
    release, ended = threading.Event(), threading.Event()

    def endless(job: Job) -> None:
        release.wait(20)
        ended.set()

    (job_id,) = await put(conn)
    started = time.monotonic()

    summary = await tick_once(services({"toy": Kind(endless, timeout=0.2)}), seconds=3)

    assert time.monotonic() - started < 4
    assert not ended.is_set()
    assert summary["jobs"]["lost"] == 1
    assert await statuses(conn) == {"running": 1}
    assert (await row_of(conn, job_id))["lease"] > 0
    release.set()
    await asyncio.to_thread(ended.wait, 20)


async def test_a_thread_that_ends_soon_after_its_time_has_failed_by_it(conn, services):
    release, loop = threading.Event(), asyncio.get_running_loop()

    def slow(job: Job) -> None:
        loop.call_soon_threadsafe(loop.call_later, 0.15, release.set)
        release.wait(20)

    (job_id,) = await put(conn)

    await tick_once(services({"toy": Kind(slow, timeout=0.1)}))

    assert (await row_of(conn, job_id))["last_error"] == "TimeoutError: it ran longer than 0.1 s"
