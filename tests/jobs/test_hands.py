"""Many jobs in one task: nothing that one leaves behind in it reaches the next, and none keeps the others waiting."""

import asyncio
import contextvars
import time
from itertools import pairwise

import structlog

from app.jobs import Job, Kind
from tests.jobs.rows import put, row_of, statuses, tick_once

WHO: contextvars.ContextVar[int] = contextvars.ContextVar("who", default=0)


async def test_quick_jobs_share_a_task(conn, services):
    tasks = []

    async def toy(job: Job) -> None:
        tasks.append(asyncio.current_task())

    await put(conn, 50)

    await tick_once(services({"toy": Kind(toy)}, job_concurrency=50))

    assert len(tasks) == 50
    assert len(set(tasks)) < 5


async def test_what_a_job_puts_into_its_context_is_not_there_for_the_next(conn, services):
    found = []

    async def toy(job: Job) -> None:
        found.append(WHO.get())
        WHO.set(job.id)

    await put(conn, 20)

    await tick_once(services({"toy": Kind(toy)}, job_concurrency=5))

    assert found == [0] * 20


async def test_a_context_variable_that_was_set_before_is_as_it_was_for_each_job(conn, services):
    found = []
    WHO.set(7)

    async def toy(job: Job) -> None:
        found.append(WHO.get())
        WHO.set(job.id + 100)

    await put(conn, 10)

    await tick_once(services({"toy": Kind(toy)}, job_concurrency=1))

    assert found == [7] * 10


async def test_what_a_job_binds_for_its_log_is_on_no_other_line(conn, services):
    async def toy(job: Job) -> None:
        structlog.contextvars.bind_contextvars(who=job.id)
        if job.payload["n"] == 2:
            async with job.completing():
                return

    await put(conn, 5)
    made = services({"toy": Kind(toy)}, job_concurrency=2)

    with structlog.testing.capture_logs() as lines:
        await tick_once(made)

    assert len([line for line in lines if line["event"] == "job.done"]) == 5
    assert [line for line in lines if "who" in line] == []


async def test_a_job_that_cancels_its_own_task_and_ends_hurts_no_other(conn, services):
    ran = []

    async def toy(job: Job) -> None:
        ran.append(job.id)
        task = asyncio.current_task()
        if job.payload["n"] == 3 and task is not None:
            task.cancel()
        else:
            await asyncio.sleep(0)

    ids = await put(conn, 10)

    summary = await tick_once(services({"toy": Kind(toy)}, job_concurrency=1))

    assert ran == ids
    assert summary["jobs"]["done"] == 10
    assert summary["errors"] == []


async def test_as_many_wait_side_by_side_as_may(conn, services):
    together, waiting = asyncio.Event(), []

    async def toy(job: Job) -> None:
        waiting.append(job.id)
        if len(waiting) == 40:
            together.set()
        await together.wait()

    await put(conn, 60)

    summary = await tick_once(services({"toy": Kind(toy, timeout=5)}, job_concurrency=40))

    assert summary["jobs"]["done"] == 60
    assert summary["errors"] == []


async def test_never_more_run_than_may(conn, services):
    running, most = set(), []

    async def toy(job: Job) -> None:
        running.add(job.id)
        most.append(len(running))
        await asyncio.sleep(0.002 * (job.id % 3))
        running.discard(job.id)

    await put(conn, 60)

    await tick_once(services({"toy": Kind(toy)}, job_concurrency=7))

    assert max(most) == 7


async def test_jobs_that_never_pause_leave_the_loop_its_turns(conn, services):
    turns = []

    async def toy(job: Job) -> None:
        time.sleep(0.01)  # noqa: ASYNC251 - a handler that holds the loop

    async def beat() -> None:
        while True:
            turns.append(time.monotonic())
            await asyncio.sleep(0)

    await put(conn, 50)
    beating = asyncio.create_task(beat())

    await tick_once(services({"toy": Kind(toy)}, job_concurrency=50))

    beating.cancel()
    assert max(after - before for before, after in pairwise(turns)) < 0.25


async def test_the_time_limit_holds_for_a_job_that_comes_second_in_its_task(conn, services):
    async def toy(job: Job) -> None:
        if job.payload["n"] == 2:
            await asyncio.Event().wait()

    ids = await put(conn, 3)

    summary = await tick_once(services({"toy": Kind(toy, timeout=0.2)}, job_concurrency=1))

    assert await statuses(conn) == {"done": 2, "ready": 1}
    assert (await row_of(conn, ids[1]))["last_error"] == "TimeoutError: it ran longer than 0.2 s"
    assert summary["jobs"]["retried"] == 1
