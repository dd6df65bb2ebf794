"""A generator of jobs is enqueued as it is run: in order, all or nothing, and with the connection whole afterwards."""

import asyncio
from collections.abc import Iterator

import pytest

from app.errors import BadInput
from app.jobs import NewJob, enqueue_many

MANY = 23_000  # three chunks, the last one not full
LAST = 21_500
KEYS = "SELECT id, dedupe_key FROM jobs ORDER BY id"
LEFT = "SELECT count(*) FROM jobs"


def jobs(name: str = "key", count: int = MANY) -> Iterator[NewJob]:
    """Make jobs with keys, one after the other."""
    for number in range(count):
        yield NewJob("toy", {"n": number}, f"{name}-{number}")


async def test_results_come_in_the_order_of_the_generator(conn):
    results = await enqueue_many(conn, jobs())

    rows = {row["dedupe_key"]: row["id"] for row in await conn.fetch(KEYS)}
    assert [result.id for result in results] == [rows[f"key-{number}"] for number in range(MANY)]
    assert all(result.is_new for result in results)


async def test_ids_are_the_rows_own_when_two_enqueue_in_turns(conn, connect):
    found = await asyncio.gather(enqueue_many(conn, jobs("a")), enqueue_many(await connect(), jobs("b")))

    rows = {row["dedupe_key"]: row["id"] for row in await conn.fetch(KEYS)}
    for name, results in zip("ab", found, strict=True):
        assert [result.id for result in results] == [rows[f"{name}-{number}"] for number in range(MANY)]


async def test_what_was_there_is_found_again_in_every_chunk(conn):
    first = await enqueue_many(conn, jobs())

    again = await enqueue_many(conn, jobs())

    assert [result.id for result in again] == [result.id for result in first]
    assert not any(result.is_new for result in again)


async def test_nothing_remains_when_the_generator_fails(conn):
    def failing() -> Iterator[NewJob]:
        yield from jobs(count=LAST)
        yield NewJob("toy", {"n": float("nan")})

    with pytest.raises(BadInput, match="not JSON"):
        await enqueue_many(conn, failing())

    assert await conn.fetchval(LEFT) == 0


async def test_nothing_remains_when_a_late_job_is_refused(conn):
    def refused() -> Iterator[NewJob]:
        yield from jobs(count=LAST)
        yield NewJob("toy", priority=7)

    with pytest.raises(BadInput, match="priority"):
        await enqueue_many(conn, refused())

    assert await conn.fetchval(LEFT) == 0


async def test_nothing_remains_when_it_is_cancelled(conn):
    come = asyncio.Event()

    def told() -> Iterator[NewJob]:
        yield from jobs(count=LAST)
        come.set()
        yield from jobs("late", MANY)

    enqueueing = asyncio.create_task(enqueue_many(conn, told()))
    await come.wait()
    enqueueing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await enqueueing

    assert await conn.fetchval(LEFT) == 0


async def test_the_callers_transaction_goes_on_after_a_generator_that_failed(conn):
    def failing() -> Iterator[NewJob]:
        yield from jobs(count=LAST)
        raise LookupError

    async with conn.transaction():
        with pytest.raises(LookupError):
            await enqueue_many(conn, failing())
        await enqueue_many(conn, [NewJob("toy")])

    assert await conn.fetchval(LEFT) == 1


async def test_others_have_their_turn_while_many_are_made(conn):
    made, seen = 0, set()

    def counted() -> Iterator[NewJob]:
        nonlocal made
        for job in jobs(count=2000):
            made += 1
            yield job

    async def look() -> None:
        while True:
            seen.add(made)
            await asyncio.sleep(0)

    looking = asyncio.create_task(look())
    await enqueue_many(conn, counted())
    looking.cancel()

    assert {250, 500, 1750, 2000} <= seen
