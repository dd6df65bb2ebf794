"""Any number of ticks may run at once, from any number of processes: each job runs once, and none starves."""

import asyncio

from app.jobs import Job, Kind, Snooze, Steps
from tests.jobs.processes import tick_in_process
from tests.jobs.rows import make_due, put, statuses, tick_once
from tests.jobs.toys import TABLE


async def test_two_processes_in_a_loop_run_each_job_once_and_never_deadlock(conn, dsn):
    await conn.execute(TABLE)
    await put(conn, 250, kind="note")

    both = await asyncio.gather(*(tick_in_process(dsn, 4) for _ in range(2)))

    summaries = [summary for one in both for summary in one.summaries]
    assert await statuses(conn) == {"done": 250}
    assert await conn.fetchval("SELECT count(*) FROM ran") == 250
    assert await conn.fetchval("SELECT count(DISTINCT job_id) FROM ran") == 250
    assert sum(summary["jobs"]["done"] for summary in summaries) == 250
    assert max(summary["jobs"]["claimed"] for summary in summaries) <= 100
    assert [summary["errors"] for summary in summaries] == [[]] * 8


async def test_five_ticks_of_one_process_at_once_run_each_job_once(conn, services):
    ran = []

    async def toy(job: Job) -> None:
        ran.append(job.id)
        await asyncio.sleep(0)

    made = services({"toy": Kind(toy)})
    ids = await put(conn, 300)

    summaries = await asyncio.gather(*(tick_once(made) for _ in range(5)))

    assert sorted(ran) == ids
    assert sum(summary["jobs"]["done"] for summary in summaries) == 300
    assert max(summary["jobs"]["claimed"] for summary in summaries) <= 100


async def test_jobs_that_always_fail_do_not_keep_good_ones_waiting(conn, services):
    async def bad(job: Job) -> None:
        raise RuntimeError

    async def good(job: Job) -> None:
        pass

    made = services({"bad": Kind(bad, retry=Steps(*[0] * 50)), "good": Kind(good)})
    await put(conn, 150, kind="bad", max_attempts=100, due_since=9000)
    await put(conn, 150, kind="good")

    for _ in range(3):
        await make_due(conn)
        await tick_once(made)

    assert await conn.fetchval("SELECT count(*) FROM jobs WHERE kind = 'good' AND status = 'done'") == 150


async def test_jobs_that_snooze_for_nothing_do_not_keep_good_ones_waiting(conn, services):
    async def lazy(job: Job) -> None:
        raise Snooze(0)

    made = services({"lazy": Kind(lazy), "good": Kind(lambda _job: None)})
    await put(conn, 150, kind="lazy", due_since=9000)
    await put(conn, 150, kind="good")

    for _ in range(4):
        await tick_once(made)

    assert await conn.fetchval("SELECT count(*) FROM jobs WHERE kind = 'good' AND status = 'done'") == 150
