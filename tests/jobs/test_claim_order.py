"""High priority comes first, then what has been due longest; no queue waits behind another for ever."""

import random
from collections import Counter

import pytest

from app.jobs import Job, Kind
from app.jobs.queue import claim, claim_reminders
from tests.jobs.rows import LEASE, ids_of, put, statuses, tick_once

NAMES = ["a", "b", "c", "d", "e", "f", "g"]


async def test_what_has_been_due_longest_comes_first(conn):
    ids = await put(conn, 50)

    taken = await claim(conn, ["default"], ["toy"], 10, LEASE)

    assert ids_of(taken) == ids[:10]


async def test_jobs_due_at_the_same_moment_come_in_the_order_they_were_put(conn):
    ids = await put(conn, 50)
    await conn.execute("UPDATE jobs SET run_at = date_trunc('day', now())")

    taken = await claim(conn, ["default"], ["toy"], 50, LEASE)

    assert ids_of(taken) == ids


async def test_high_priority_comes_before_normal_and_normal_before_low(conn):
    low = await put(conn, 3, priority=-1, due_since=900)
    normal = await put(conn, 3, due_since=500)
    high = await put(conn, 3, priority=1)

    taken = await claim(conn, ["default"], ["toy"], 9, LEASE)

    assert ids_of(taken) == [*high, *normal, *low]


@pytest.mark.parametrize("queues", [1, 2, 3, 7])
async def test_priority_goes_before_the_turn_of_the_queues(conn, queues):
    served = NAMES[:queues]
    low = [job_id for name in served for job_id in await put(conn, 2, queue=name, priority=-1)]
    normal = [job_id for name in served for job_id in await put(conn, 2, queue=name)]
    high = [job_id for name in served for job_id in await put(conn, 2, queue=name, priority=1)]

    taken = [set(ids_of(await claim(conn, served, ["toy"], 2 * queues, LEASE))) for _ in range(3)]

    assert taken == [set(high), set(normal), set(low)]


async def test_the_order_holds_for_a_large_batch_in_a_large_table(conn):
    await put(conn, 3000, due_since=100_000, kind="shop.closed")
    ids = await put(conn, 2000)
    await conn.execute("ANALYZE jobs")

    taken = await claim(conn, ["default", "other"], ["toy"], 500, LEASE)

    assert ids_of(taken) == ids[:500]


async def test_the_nearest_start_comes_first_among_reminders(conn):
    ids = await put(conn, 200, queue="reminders")
    starts = {job_id: minutes for minutes, job_id in enumerate(random.Random(7).sample(ids, len(ids)))}  # noqa: S311 - order only
    await conn.executemany(
        "UPDATE jobs SET expires_at = now() + make_interval(mins => $2) WHERE id = $1",
        [(job_id, minutes + 60) for job_id, minutes in starts.items()],
    )

    taken = await claim_reminders(conn, ["toy"], 150, LEASE)

    assert ids_of(taken) == sorted(ids, key=starts.__getitem__)[:150]


async def test_no_queue_starves_behind_others_that_are_never_empty(conn, services):
    random.seed(3)
    ran: Counter[str] = Counter()

    async def toy(job: Job) -> None:
        ran[job.queue] += 1

    made = services({"toy": Kind(toy)}, queues=tuple(NAMES[:4]))
    for name in NAMES[:4]:
        await put(conn, 300, queue=name, due_since=5000)

    for _ in range(10):
        await tick_once(made, jobs=30)

    assert ran.total() == 300
    assert min(ran[name] for name in NAMES[:4]) >= 10


async def test_an_instance_that_serves_reminders_only_lets_other_jobs_wait(conn, services):
    await put(conn, 3)

    summary = await tick_once(services(queues=("reminders",)))

    assert summary["errors"] == []
    assert await statuses(conn) == {"ready": 3}
