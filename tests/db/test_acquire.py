"""A connection is lent within the limit that was named, or DatabaseUnavailable says that it could not be."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from app.db import Database
from app.errors import DatabaseUnavailable
from tests.db.proxy import Proxy
from tests.servers import free_port

SLACK = 1.5

BACKENDS = """
    SELECT count(*)
    FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'dormouse'
"""


async def took(work) -> float:
    """Return how long *work* took until it said that the database is unavailable."""
    started = time.monotonic()
    with pytest.raises(DatabaseUnavailable):
        await work
    return time.monotonic() - started


async def use(database: Database, limit: float | None = None) -> int:
    async with database.acquire(limit) as connection:
        one: int = await connection.fetchval("SELECT 1")
    return one


@contextlib.asynccontextmanager
async def opened(dsn: str, **said: Any) -> AsyncIterator[Database]:
    database = Database(dsn, **said)
    yield database
    await database.close()


async def test_a_full_pool_is_unavailable_when_the_limit_is_over(dsn):
    async with opened(dsn, pool_max=2) as database, database.acquire(), database.acquire():
        seconds = await took(use(database, 0.3))

    assert 0.25 <= seconds < 0.3 + SLACK


async def test_a_full_pool_lends_what_comes_back_in_time(dsn):
    async with opened(dsn, pool_max=2) as database, database.acquire(), contextlib.AsyncExitStack() as held:
        await held.enter_async_context(database.acquire())
        waiting = asyncio.create_task(use(database, 10))
        await asyncio.sleep(0)
        await held.aclose()

        assert await waiting == 1


async def test_no_connection_is_made_before_one_is_asked_for(direct_dsn, connect):
    watcher = await connect()

    async with opened(direct_dsn) as database:
        before = await watcher.fetchval(BACKENDS)
        await use(database)
        after = await watcher.fetchval(BACKENDS)

    assert (before, after) == (0, 1)


async def test_a_refused_connection_is_tried_again_until_the_limit():
    async with opened(f"postgresql://postgres@127.0.0.1:{free_port()}/x") as database:
        seconds = await took(use(database, 0.6))

    assert 0.55 <= seconds < 0.6 + SLACK


async def test_a_database_that_wakes_within_the_limit_is_waited_for(server, direct_dsn):
    name = direct_dsn.partition("?")[0].rpartition("/")[2]
    proxy = Proxy(server.host, server.port)
    proxy.port = free_port()

    async with opened(f"postgresql://postgres@127.0.0.1:{proxy.port}/{name}", connect_timeout=20) as database:
        waiting = asyncio.create_task(use(database))
        with contextlib.suppress(TimeoutError):  # it is to be waiting still
            await asyncio.wait_for(asyncio.shield(waiting), 0.4)
        async with proxy:
            assert await waiting == 1
            await database.close()


async def test_a_database_that_is_not_there_is_told_at_once(dsn):
    async with opened(dsn.replace("/t_", "/u_")) as database:
        with pytest.raises((asyncpg.InvalidCatalogNameError, asyncpg.ProtocolViolationError)):
            await use(database, 20)


async def test_a_storm_of_cancelled_waiters_leaks_no_connection(direct_dsn, connect):
    watcher = await connect()
    async with opened(direct_dsn, pool_max=3) as database:
        for turn in range(20):
            tasks = [asyncio.create_task(use(database)) for _ in range(10)]
            for _ in range(turn):
                await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        results = await asyncio.gather(*(use(database, 5) for _ in range(30)))

        assert results == [1] * 30
        assert await watcher.fetchval(BACKENDS) <= 3


async def test_an_error_inside_gives_the_connection_back(dsn):
    async with opened(dsn, pool_max=2) as database:
        for _ in range(10):
            with pytest.raises(asyncpg.UndefinedTableError):
                async with database.acquire(5) as connection:
                    await connection.execute("SELECT 1 FROM nowhere")
            with pytest.raises(ZeroDivisionError):
                async with database.acquire(5):
                    raise ZeroDivisionError

        assert await use(database, 1) == 1


async def test_a_transaction_that_was_left_open_does_not_reach_the_next_user(dsn):
    async def fail(database: Database) -> None:
        async with database.acquire() as connection, connection.transaction():
            await connection.execute("INSERT INTO jobs (kind) VALUES ('toy')")
            raise ZeroDivisionError

    async with opened(dsn, pool_max=2) as database:
        with pytest.raises(ZeroDivisionError):
            await fail(database)

        async with database.acquire() as connection:
            assert not connection.is_in_transaction()
            assert await connection.fetchval("SELECT count(*) FROM jobs") == 0


async def test_a_statement_is_cut_at_its_limit_and_the_connection_serves_on(dsn):
    async def wait_long(database: Database) -> None:
        async with database.acquire() as connection:
            await connection.execute("SELECT pg_sleep(60)")

    async with opened(dsn, pool_max=2, command_timeout=0.3) as database:
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            await wait_long(database)
        seconds = time.monotonic() - started

        assert seconds < 0.3 + SLACK
        assert await use(database, 5) == 1


async def test_what_was_closed_opens_again(dsn):
    database = Database(dsn)

    for _ in range(2):
        assert await use(database) == 1
        await database.close()
        await database.close()


async def test_round_trips_are_counted(dsn):
    async with opened(dsn) as database:
        link = database.link()
        async with link.acquire(is_checked=False) as connection:
            await connection.execute("SELECT 1")
            await connection.fetch("SELECT 1")
        async with link.acquire(is_checked=False) as connection:
            await connection.fetchrow("SELECT 1")
            await connection.fetchval("SELECT 1")

    assert link.round_trips == 4


async def test_a_connection_that_is_kept_goes_to_the_next_step_and_then_back_to_the_pool(dsn):
    async with opened(dsn, pool_max=1) as database:
        link = database.link()
        link.keep()
        async with link.acquire() as first:
            assert await first.fetchval("SELECT 1") == 1
        async with link.acquire() as second:
            assert second is first
        with pytest.raises(DatabaseUnavailable):
            await use(database, 0.3)

        await link.let_go()

        assert await use(database, 5) == 1
        async with link.acquire() as third:
            assert await third.fetchval("SELECT 1") == 1
        assert await use(database, 5) == 1


async def test_a_connection_whose_step_failed_is_not_kept(dsn):
    async with opened(dsn, pool_max=1) as database:
        link = database.link()
        link.keep()
        with pytest.raises(TimeoutError):
            async with link.acquire() as connection:
                await connection.execute("SELECT pg_sleep(60)", timeout=0.2)

        assert await use(database, 5) == 1


async def test_what_is_kept_is_cut_too(dsn):
    async with opened(dsn, pool_max=1) as database:
        link = database.link()
        link.keep()
        async with link.acquire() as connection:
            await connection.execute("SELECT 1")

        link.terminate()
        await link.let_go()

        assert await use(database, 5) == 1
