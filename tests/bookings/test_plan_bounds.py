"""Planning is one bounded statement: nearest start first, any number of planners at once, cheap on a full book."""

import asyncio
import json
import time

import asyncpg
import pytest

from app.bookings import reminders
from tests.bookings.shelf import DAY, HOUR, WEEK, book, book_many, plan

PLANNERS = 10


async def test_a_full_batch_takes_the_nearest_starts_and_leaves_the_rest_to_the_next(conn):
    await book_many(conn, 25)

    first, second, third = [await plan(conn, limit=10) for _ in range(3)]

    order = [row["booking_id"] for row in await conn.fetch("SELECT booking_id FROM reminders ORDER BY job_id")]
    assert (first.planned, second.planned, third.planned) == (10, 10, 5)
    assert order == [f"b{n}" for n in range(1, 26)]


async def test_a_limit_of_nothing_plans_nothing(conn):
    await book(conn, "b", HOUR)

    planned = await plan(conn, limit=0)

    assert planned.planned == 0


async def test_ten_planners_at_once_plan_every_reminder_once(conn, dsn):
    await book_many(conn, 300)
    planners = [await asyncpg.connect(dsn, statement_cache_size=0) for _ in range(PLANNERS)]

    planned = await asyncio.gather(*(plan(planner, DAY, 2 * DAY, limit=1000) for planner in planners))

    assert sum(found.planned for found in planned) == 300
    assert sum(found.superseded for found in planned) == 300
    assert await conn.fetchval("SELECT count(*) FROM jobs") == 300
    assert await conn.fetchval("SELECT count(*) FROM reminders WHERE status = 'planned'") == 300
    assert await conn.fetchval("SELECT count(*) FROM reminders JOIN jobs ON jobs.id = job_id") == 300
    for planner in planners:
        await planner.close()


FILL = """
    INSERT INTO bookings (id, starts_at, attendee_email, remind_before, created_at)
    SELECT 'b' || n,
        CASE WHEN n % 40 = 0 THEN now() + interval '1 hour' + n * interval '0.1 second'
            WHEN n % 2 = 0 THEN now() + interval '3 days' + n * interval '1 minute'
            ELSE now() - interval '1 hour' - n * interval '1 minute' END,
        'guest@example.org', CASE WHEN n % 10 = 5 OR n % 200 = 40 THEN '{12:00,48:00}'::interval[] END,
        now() - interval '400 days'
    FROM generate_series(1, 200000) AS n
"""
READS = """
    SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)
    FROM pg_stat_xact_user_tables
    WHERE relname = 'bookings'
"""
A_TICK_BEFORE = "INSERT INTO ticks VALUES (gen_random_uuid(), now() - interval '15 minutes', now(), 'api', '{}')"


@pytest.fixture
async def full_book(conn):
    """200,000 bookings, of which 5,000 start within a day and half are over."""
    await conn.execute(FILL)
    await conn.execute("ANALYZE bookings")
    await conn.execute(A_TICK_BEFORE)
    return conn


async def test_planning_in_a_full_book_takes_less_than_a_second_and_reads_what_may_be_owed_only(full_book):
    conn = full_book
    async with conn.transaction():
        started = time.monotonic()
        planned = await plan(conn, DAY, HOUR)
        took = time.monotonic() - started
        read = await conn.fetchval(READS)
    explained = await conn.fetchval(
        "EXPLAIN (FORMAT JSON) " + reminders.PLAN, ["86400", "3600"], ["email"], 100, reminders.KIND
    )

    assert planned.planned + planned.superseded == 100
    assert took < 1
    assert read < 6000
    assert list(scans(json.loads(explained), "Seq Scan", "bookings")) == []


def scans(node, kind: str, table: str):
    """Find the scans of a kind in a plan."""
    if isinstance(node, list):
        for part in node:
            yield from scans(part, kind, table)
    elif isinstance(node, dict):
        if node.get("Node Type", "").endswith(kind) and node.get("Relation Name") == table:
            yield node
        for part in node.values():
            yield from scans(part, kind, table)


async def test_bookings_that_are_over_cost_a_later_tick_nothing(conn):
    await conn.execute(
        "INSERT INTO bookings (id, starts_at, created_at) SELECT 'b' || n, now() - n * interval '1 minute',"
        " now() - interval '400 days' FROM generate_series(60, 5060) AS n"
    )
    await conn.execute(A_TICK_BEFORE)
    await conn.execute("ANALYZE bookings")

    async with conn.transaction():
        planned = await plan(conn, WEEK)
        read = await conn.fetchval(READS)

    assert (planned.planned, planned.missed) == (0, 0)
    assert read < 10
