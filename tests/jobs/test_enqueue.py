"""Enqueue puts work in within the caller's transaction, one job or many, and says which row holds it."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pydantic

from app.jobs import Enqueued, NewJob, enqueue, enqueue_many
from tests.jobs.rows import put, row_of, statuses


@dataclass
class Avatar:
    user_id: int


class Welcome(pydantic.BaseModel):
    name: str
    at: datetime


async def test_a_job_exists_once_its_transaction_commits(conn, connect):
    other = await connect()

    async with conn.transaction():
        enqueued = await enqueue(conn, "toy", {"n": 1})
        seen_before = await statuses(other)
    seen_after = await statuses(other)

    assert enqueued.is_new
    assert (seen_before, seen_after) == ({}, {"ready": 1})


async def test_a_job_is_gone_with_the_transaction_that_rolled_back(conn):
    transaction = conn.transaction()
    await transaction.start()
    await enqueue(conn, "toy", {"n": 1})
    await enqueue_many(conn, [NewJob("toy"), NewJob("toy", dedupe_key="k")])

    await transaction.rollback()

    assert await statuses(conn) == {}


async def test_a_job_has_the_defaults_of_its_table(conn):
    enqueued = await enqueue(conn, "toy")

    row = await row_of(conn, enqueued.id)

    assert (row["status"], row["queue"], row["priority"], row["max_attempts"]) == ("ready", "default", 0, 8)
    assert (row["payload"], row["errors"], row["attempts"], row["crashes"], row["fence"]) == ({}, [], 0, 0, 0)
    assert (row["dedupe_key"], row["expires_at"], row["locked_until"], row["finished_at"]) == (None,) * 4
    assert -1 < row["wait"] <= 0


async def test_all_that_is_said_of_a_job_is_kept_by_either_way_in(conn):
    at, until = datetime(2031, 5, 6, 7, 8, 9, 123456, UTC), datetime(2031, 5, 7, tzinfo=timezone(timedelta(hours=7)))
    said: dict[str, Any] = {"queue": "video", "priority": 1, "run_at": at, "expires_at": until, "max_attempts": 3}
    payload = {"ümlaut": "ไทย 🐁", "deep": [1, 2.5, None, True, {"x": 2**63}], "quote": '\\u0000 \\ "'}

    one = await enqueue(conn, "toy", payload, dedupe_key="a", **said)
    (many,) = await enqueue_many(conn, [NewJob("toy", payload, "b", **said)])

    for enqueued in (one, many):
        row = await row_of(conn, enqueued.id)
        assert {name: row[name] for name in said} == said
        assert row["payload"] == payload


async def test_a_payload_may_be_a_mapping_a_dataclass_or_a_model(conn):
    at = datetime(2031, 5, 6, tzinfo=UTC)

    things: list[Any] = [{}, Avatar(7), Welcome(name="Ada", at=at)]
    ids = [(await enqueue(conn, "toy", thing)).id for thing in things]

    payloads = [(await row_of(conn, job_id))["payload"] for job_id in ids]
    assert payloads == [{}, {"user_id": 7}, {"name": "Ada", "at": "2031-05-06T00:00:00Z"}]


async def test_a_key_that_is_taken_gives_the_row_that_holds_it(conn):
    first = await enqueue(conn, "toy", {"n": 1}, dedupe_key="order:1")

    again = await enqueue(conn, "other", {"n": 2}, dedupe_key="order:1")

    assert again == Enqueued(first.id, is_new=False)
    assert (await row_of(conn, first.id))["payload"] == {"n": 1}


async def test_a_key_stays_taken_for_as_long_as_its_row_exists(conn):
    first = await enqueue(conn, "toy", dedupe_key="k")
    await conn.execute("UPDATE jobs SET status = 'done', finished_at = now()")

    while_done = await enqueue(conn, "toy", dedupe_key="k")
    await conn.execute("DELETE FROM jobs")
    afterwards = await enqueue(conn, "toy", dedupe_key="k")

    assert while_done == Enqueued(first.id, is_new=False)
    assert afterwards.is_new


async def test_fifty_at_once_with_the_same_key_leave_one_row(conn, database):
    async def one() -> Enqueued:
        async with database.acquire() as connection:
            return await enqueue(connection, "toy", dedupe_key="same")

    results = await asyncio.gather(*(one() for _ in range(50)))

    assert len({result.id for result in results}) == 1
    assert sum(result.is_new for result in results) == 1
    assert await statuses(conn) == {"ready": 1}


async def test_a_batch_that_races_another_for_its_keys_leaves_one_row_a_key(conn, connect):
    connections = [await connect() for _ in range(4)]
    keys = [f"k{n}" for n in range(50)]

    results = await asyncio.gather(
        *(enqueue_many(each, [NewJob("toy", dedupe_key=key) for key in keys]) for each in connections)
    )

    assert sum(result.is_new for batch in results for result in batch) == 50
    assert len({tuple(result.id for result in batch) for batch in results}) == 1
    assert await statuses(conn) == {"ready": 50}


async def test_an_enqueue_waits_for_the_transaction_that_took_its_key(conn, connect):
    first, second = await connect(), await connect()
    transaction = first.transaction()
    await transaction.start()
    taken = await enqueue(first, "toy", dedupe_key="k")

    waiting = asyncio.create_task(enqueue_many(second, [NewJob("toy"), NewJob("toy", dedupe_key="k")]))
    await asyncio.sleep(0)
    await transaction.commit()

    assert (await waiting)[1] == Enqueued(taken.id, is_new=False)
    assert await statuses(conn) == {"ready": 2}


async def test_the_results_of_a_batch_stand_in_its_order(conn):
    held = await enqueue(conn, "toy", dedupe_key="held")
    keys = ["a", None, "held", "b", "a", None, "c", "held", "b"]

    results = await enqueue_many(conn, [NewJob("toy", {"n": n}, key) for n, key in enumerate(keys)])

    assert [result.is_new for result in results] == [True, True, False, True, False, True, True, False, False]
    assert results[4].id == results[0].id
    assert results[8].id == results[3].id
    assert results[2].id == results[7].id == held.id
    for n in (0, 1, 3, 5, 6):
        assert (await row_of(conn, results[n].id))["payload"] == {"n": n}


async def test_a_batch_of_more_than_one_statement_keeps_its_order_too(conn):
    jobs = [NewJob("toy", {"n": n}, f"k{n % 10_500}") for n in range(10_600)]

    results = await enqueue_many(conn, jobs)

    assert [result.is_new for result in results] == [n < 10_500 for n in range(10_600)]
    assert results[10_550].id == results[50].id
    assert (await row_of(conn, results[10_499].id))["payload"] == {"n": 10_499}


async def test_a_batch_of_none_is_no_statement_at_all(conn):
    assert await enqueue_many(conn, []) == []


async def test_jobs_put_by_both_ways_never_share_an_id(conn):
    one = await enqueue(conn, "toy")
    many = await enqueue_many(conn, [NewJob("toy")] * 3)
    plain = await put(conn, 2)

    assert len({one.id, *(result.id for result in many), *plain}) == 6
