"""Endings are written together; one that is refused hurts no other, and nothing is counted before it is certain."""

import asyncio
from collections.abc import Sequence

from app.jobs import Job, Kind
from app.jobs.queue import Verdict, claim
from app.jobs.settler import Settler
from tests.jobs.rows import LEASE, make_due, put, row_of, statuses, tick_once

POISON = """
    ALTER TABLE jobs
    ADD CONSTRAINT nobody_is_done_with_the_fifth CHECK (status <> 'done' OR payload ->> 'n' <> '5')
"""


async def test_one_refused_row_does_not_hurt_its_neighbours_and_counts_stay_exact(conn, services):
    await conn.execute(POISON)
    together = asyncio.Event()
    waiting: list[int] = []

    async def toy(job: Job) -> None:
        waiting.append(job.id)
        if len(waiting) == 10:
            together.set()
        await together.wait()

    ids = await put(conn, 10)

    summary = await tick_once(services({"toy": Kind(toy)}, job_concurrency=10))

    assert summary["jobs"]["done"] == 9
    assert summary["jobs"]["lost"] == 1
    assert await statuses(conn) == {"done": 9, "running": 1}
    assert (await row_of(conn, ids[4]))["status"] == "running"
    assert summary["errors"] == [{"section": "run", "error": "settle: CheckViolationError"}]


async def test_all_is_settled_before_the_answer(conn, services):
    await put(conn, 100)

    summary = await tick_once(services({"toy": Kind(lambda _job: None)}))

    assert summary["jobs"]["done"] == 100
    assert await statuses(conn) == {"done": 100}
    assert (await conn.fetchval("SELECT count(*) FROM jobs WHERE locked_until IS NOT NULL")) == 0


async def test_a_batch_that_is_partly_lost_is_counted_row_by_row(conn, database):
    await put(conn, 4)
    held = await claim(conn, ["default"], ["toy"], 4, LEASE)
    await conn.execute("UPDATE jobs SET fence = fence + 1 WHERE id = $1", held[2].id)
    counted: dict[int, str] = {}

    def count(batch: Sequence[tuple[Verdict, int]], won: set[int]) -> None:
        for verdict, number in batch:
            counted[number] = verdict.outcome if verdict.id in won else "lost"

    settler = Settler[int](database.link(), None, count)
    for row, outcome in zip(held, ("done", "dead", "done", "released"), strict=True):
        settler.add(Verdict(row.id, row.fence, outcome), row.id)
    early = dict(counted)
    await settler.drain()

    assert early == {}
    assert list(counted.values()) == ["done", "dead", "lost", "released"]
    assert await statuses(conn) == {"done": 1, "dead": 1, "running": 1, "ready": 1}


async def test_what_fails_together_is_written_in_few_statements(conn, services):
    async def fail(job: Job) -> None:
        raise RuntimeError

    await put(conn, 100)
    made = services({"toy": Kind(fail)}, job_concurrency=100)

    summary = await tick_once(made)
    await make_due(conn)

    assert summary["jobs"]["retried"] == 100
    assert summary["round_trips"] <= 20


async def test_a_connection_that_dies_before_the_settle_charges_the_attempt_once(conn, services):
    async def toy(job: Job) -> None:
        await conn.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    (job_id,) = await put(conn)

    summary = await tick_once(services({"toy": Kind(toy)}))

    row = await row_of(conn, job_id)
    assert (row["status"], row["attempts"]) == ("done", 1)
    assert summary["jobs"]["done"] == 1


async def test_a_large_batch_is_counted_in_turns_with_the_rest_of_the_loop(conn, database):
    await put(conn, 600)
    held = await claim(conn, ["default"], ["toy"], 600, LEASE)
    sizes, turns = [], 0

    def count(batch: Sequence[tuple[Verdict, int]], _won: set[int]) -> None:
        sizes.append((len(batch), turns))

    async def turn() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    turning = asyncio.create_task(turn())
    settler = Settler[int](database.link(), None, count)
    for row in held:
        settler.add(Verdict(row.id, row.fence, "done"), row.id)
    await settler.drain()
    turning.cancel()

    assert sum(size for size, _ in sizes) == 600
    assert max(size for size, _ in sizes) <= 200
    assert len({when for _, when in sizes}) >= 3


async def test_what_was_written_is_counted_even_if_the_rest_is_given_up(conn, database):
    await put(conn, 500)
    held = await claim(conn, ["default"], ["toy"], 500, LEASE)
    counted: list[int] = []
    has_begun = asyncio.Event()

    def count(batch: Sequence[tuple[Verdict, int]], won: set[int]) -> None:
        counted.extend(won & {verdict.id for verdict, _ in batch})
        has_begun.set()

    settler = Settler[int](database.link(), None, count)
    for row in held:
        settler.add(Verdict(row.id, row.fence, "done"), row.id)
    await has_begun.wait()

    settler.cancel()
    await asyncio.sleep(0.05)

    assert len(counted) == len(set(counted)) == await conn.fetchval("SELECT count(*) FROM jobs WHERE status = 'done'")
