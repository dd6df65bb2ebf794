"""A large batch goes in by COPY where nothing is against it; whatever is, the result is that of row by row."""

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from app.errors import BadInput
from app.jobs import NewJob, copying, enqueue, enqueue_many
from tests.jobs.rows import row_of

MANY = copying.LEAST
COUNT = "SELECT count(*) FROM jobs"


@pytest.fixture
def copied(monkeypatch):
    """What each try at a COPY came to: True where it did."""
    found: list[bool] = []
    copy_in = copying.copy_in

    async def watched(connection, jobs):
        ids = await copy_in(connection, jobs)
        found.append(ids is not None)
        return ids

    monkeypatch.setattr(sys.modules["app.jobs.enqueue"], "copy_in", watched)
    return found


def batch(many: int = MANY, **odd: NewJob) -> list[NewJob]:
    """Return *many* jobs with keys; `at_7=NewJob(...)` puts another in the place of the one at 7."""
    jobs = [NewJob("toy", {"n": n, "text": 'tab\t "quoted" \\ back\nline ü'}, f"key-{n}") for n in range(many)]
    for place, job in odd.items():
        jobs[int(place.removeprefix("at_"))] = job
    return jobs


async def test_ids_stand_in_the_order_of_the_batch_and_rows_hold_what_was_said(conn, copied):
    results = await enqueue_many(conn, batch())

    assert copied == [True]
    assert all(result.is_new for result in results)
    for n in (0, 1, MANY // 2, MANY - 1):
        row = await row_of(conn, results[n].id)
        assert (row["payload"]["n"], row["dedupe_key"], row["kind"]) == (n, f"key-{n}", "toy")
        assert row["payload"]["text"] == 'tab\t "quoted" \\ back\nline ü'
        assert (row["queue"], row["priority"], row["max_attempts"], row["status"]) == ("default", 0, 8, "ready")
    assert await conn.fetchval("SELECT count(*) FROM jobs WHERE run_at = created_at") == MANY


async def test_all_that_may_be_said_is_kept(conn, copied):
    later = datetime.now(UTC) + timedelta(hours=1)
    odd = NewJob("other", {}, None, "slow", -1, later, later + timedelta(hours=1), 3)

    results = await enqueue_many(conn, batch(at_7=odd))

    row = await row_of(conn, results[7].id)
    kept = [row[name] for name in ("kind", "dedupe_key", "queue", "priority", "run_at", "max_attempts")]
    assert kept == ["other", None, "slow", -1, later, 3]
    assert row["expires_at"] == later + timedelta(hours=1)
    assert (await row_of(conn, results[8].id))["run_at"] <= datetime.now(UTC)
    assert copied == [True]


async def test_a_small_batch_is_inserted(conn, copied):
    await enqueue_many(conn, batch(MANY - 1))

    assert copied == []


async def test_a_batch_that_was_enqueued_before_gives_the_rows_that_are_there(conn, copied):
    first = await enqueue_many(conn, batch())

    again = await enqueue_many(conn, batch())

    assert copied == [True, False]
    assert [result.id for result in again] == [result.id for result in first]
    assert not any(result.is_new for result in again)
    assert await conn.fetchval(COUNT) == MANY


@pytest.mark.parametrize("place", [1, MANY - 1])
async def test_one_key_that_is_taken_gives_its_row_and_hurts_no_other(conn, copied, place):
    held = await enqueue(conn, "toy", dedupe_key=f"key-{place}")

    results = await enqueue_many(conn, batch())

    assert copied == [False]
    assert [result.is_new for result in results].count(False) == 1
    assert results[place].id == held.id
    assert (await row_of(conn, results[0].id))["payload"]["n"] == 0
    assert await conn.fetchval(COUNT) == MANY


async def test_a_key_that_comes_twice_is_one_row(conn, copied):
    results = await enqueue_many(conn, batch(at_9=NewJob("toy", {}, "key-3")))

    assert copied == []  # not even tried
    assert (results[9].id, results[9].is_new) == (results[3].id, False)


async def test_two_batches_with_the_same_keys_at_once_leave_one_row_a_key(conn, connect, copied):
    other = await connect()

    first, second = await asyncio.gather(enqueue_many(conn, batch()), enqueue_many(other, batch()))

    assert await conn.fetchval(COUNT) == MANY
    assert [one.id for one in first] == [two.id for two in second]
    assert [one.is_new for one in first] == [not two.is_new for two in second]
    assert copied.count(True) == 1


async def test_what_no_row_may_hold_is_refused_by_the_name_of_its_rule(conn, copied):
    with pytest.raises(BadInput, match="jobs kind is named"):
        await enqueue_many(conn, batch(at_5=NewJob("")))

    assert copied == [False]
    assert await conn.fetchval(COUNT) == 0


@pytest.mark.parametrize(
    "odd",
    [
        NewJob(5),  # type: ignore[arg-type]  # what a caller without a type checker may write
        NewJob("toy", dedupe_key="a\0b"),
        NewJob("toy", dedupe_key="\ud800"),
        NewJob("toy", priority=99_999),
        NewJob("toy", priority=True),
    ],
    ids=["a kind that is no text", "a NUL", "half a pair", "a number too large", "a truth for a number"],
)
async def test_odd_values_are_refused_as_they_are_in_a_small_batch(conn, copied, odd):
    with pytest.raises((BadInput, asyncpg.DataError)) as small:
        await enqueue_many(conn, [odd])
    with pytest.raises(type(small.value)) as large:
        await enqueue_many(conn, batch(at_5=odd))

    assert str(large.value) == str(small.value)
    assert await conn.fetchval(COUNT) == 0


async def test_it_stands_and_falls_with_the_transaction_of_the_caller(conn, copied):
    transaction = conn.transaction()
    await transaction.start()
    await enqueue_many(conn, batch())
    await transaction.rollback()
    after_rollback = await conn.fetchval(COUNT)

    async with conn.transaction():
        await enqueue(conn, "toy", dedupe_key="key-1")
        results = await enqueue_many(conn, batch())

    assert after_rollback == 0
    assert copied == [True, False]
    assert not results[1].is_new
    assert await conn.fetchval(COUNT) == MANY


async def test_a_connection_that_writes_jsonb_in_its_own_way_still_enqueues(conn, copied):
    await conn.set_type_codec("jsonb", schema="pg_catalog", encoder=json.dumps, decoder=json.loads)

    results = await enqueue_many(conn, batch())

    assert await conn.fetchval("SELECT payload ->> 'n' FROM jobs WHERE id = $1", results[11].id) == "11"
