"""A connection that died while it lay idle is noticed before it is lent: the next use just works."""

import asyncio

import pytest

from app import db
from app.db import Database
from app.jobs import enqueue

KILL = """
    SELECT count(pg_terminate_backend(pid, 5000))
    FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'dormouse'
"""


@pytest.fixture
def suspicious(monkeypatch):
    """Every connection counts as idle for long at once."""
    monkeypatch.setattr(db, "IDLE_CHECK_SECONDS", 0.0)


async def test_idle_connections_that_were_killed_are_replaced_twenty_times(direct_dsn, connect, suspicious):
    killer = await connect()
    database = Database(direct_dsn, pool_max=3)

    for _ in range(20):
        async with database.acquire(5) as one, database.acquire(5) as two:
            await enqueue(one, "toy")
            await enqueue(two, "toy")
        assert await killer.fetchval(KILL) == 2
    await database.close()

    assert await killer.fetchval("SELECT count(*) FROM jobs") == 40


async def test_a_connection_killed_while_it_was_lent_is_not_lent_again(direct_dsn, connect):
    killer = await connect()
    database = Database(direct_dsn, pool_max=2)

    for _ in range(5):
        async with database.acquire(5):
            await killer.fetchval(KILL)
        async with database.acquire(5) as connection:
            assert await connection.fetchval("SELECT 1") == 1

    await database.close()


async def test_the_dead_leave_no_backend_and_no_place_behind(direct_dsn, connect, suspicious):
    killer = await connect()
    database = Database(direct_dsn, pool_max=2)

    for _ in range(10):
        async with database.acquire(5) as connection:
            await connection.fetchval("SELECT 1")
        await killer.fetchval(KILL)
    async with database.acquire(2) as one, database.acquire(2) as two:
        both = await asyncio.gather(one.fetchval("SELECT 1"), two.fetchval("SELECT 1"))
    await database.close()

    assert list(both) == [1, 1]
