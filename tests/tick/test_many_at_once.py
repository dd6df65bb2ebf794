"""Any number of ticks may run at once, from any number of callers: each job runs once, and the summaries add up."""

import asyncio
from collections import Counter

from app.jobs import Job, Kind, NewJob, enqueue_many
from tests.bookings.shelf import HOUR, book, book_many
from tests.handlers.provider import run_provider
from tests.tick.ticking import tick_once


async def ten_ticks(made, count: int = 10):
    """Run ten ticks at once."""
    return await asyncio.gather(*(tick_once(made) for _ in range(count)))


async def test_ten_ticks_at_once_send_one_reminder_once(services, conn):
    async with run_provider(seconds=0.5) as provider:
        made = services(**provider.settings)
        await book(conn, "b", HOUR)

        summaries = await ten_ticks(made)

    assert len(provider.requests) == 1
    assert sum(summary["reminders"]["planned"] for summary in summaries) == 1
    assert sum(summary["reminders"]["claimed"] for summary in summaries) == 1
    assert sum(summary["reminders"]["sent"] for summary in summaries) == 1
    assert [summary["errors"] for summary in summaries] == [[]] * 10


async def test_two_ticks_in_the_same_second_send_a_batch_once(services, conn):
    async with run_provider(seconds=0.02) as provider:
        made = services(**provider.settings)
        await book_many(conn, 40)

        summaries = await ten_ticks(made, 2)

    assert sum(summary["reminders"]["sent"] for summary in summaries) == 40
    assert len(provider.requests) == 40
    assert len(set(provider.recipients)) == 40


async def test_ten_ticks_at_once_over_500_jobs_run_each_once_and_none_takes_more_than_its_batch(services, conn):
    ran: Counter[int] = Counter()

    async def count(job: Job) -> None:
        ran[job.payload["n"]] += 1

    made = services({"number.counted": Kind(count)})
    await enqueue_many(conn, [NewJob("number.counted", {"n": n}) for n in range(500)])
    await book_many(conn, 300)

    summaries = await ten_ticks(made)
    more_due = any(summary["more_due"] for summary in summaries)
    while more_due:  # ticks that plan at the same moment plan the same hundred, and one of them says that there is more
        summaries.append(await tick_once(made))
        more_due = summaries[-1]["more_due"]

    assert ran == Counter(range(500))
    assert sum(summary["jobs"]["done"] for summary in summaries) == 500
    assert max(summary["jobs"]["claimed"] for summary in summaries) <= 100
    assert max(summary["reminders"]["claimed"] for summary in summaries) <= 100
    assert sum(summary["reminders"]["sent"] for summary in summaries) == 300
    assert all(summary["errors"] == [] for summary in summaries)
    assert await conn.fetchval("SELECT count(*) FROM ticks") == len(summaries)


async def test_a_caller_that_calls_again_while_a_tick_runs_gets_the_other_jobs(services, conn):
    started, finish, ran = asyncio.Event(), asyncio.Event(), []

    async def wait(job: Job) -> None:
        ran.append(job.payload["n"])
        started.set()
        await finish.wait()

    made = services({"number.waited": Kind(wait)}, job_concurrency=1)
    await enqueue_many(conn, [NewJob("number.waited", {"n": 1})])
    first = asyncio.create_task(tick_once(made))
    await started.wait()
    await enqueue_many(conn, [NewJob("number.waited", {"n": 2})])
    second = asyncio.create_task(tick_once(made))
    finish.set()

    summaries = await asyncio.gather(first, second)

    assert sorted(ran) == [1, 2]
    assert sum(summary["jobs"]["done"] for summary in summaries) == 2
