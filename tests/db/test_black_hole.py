"""A connection that takes everything and answers nothing costs no more than the limits say."""

import asyncio
import time

import pytest

from app.db import DATABASE_ERRORS, Database, is_transient
from app.errors import DatabaseUnavailable

SLACK = 2.0


async def test_a_statement_in_a_black_hole_ends_at_its_limit(proxy, proxied_dsn):
    database = Database(proxied_dsn, command_timeout=0.4)
    started = time.monotonic()

    async def ask_twice() -> None:
        async with database.acquire() as connection:
            await connection.fetchval("SELECT 1")
            proxy.black_hole()
            await connection.fetchval("SELECT 1")

    with pytest.raises(DATABASE_ERRORS) as raised:
        await ask_twice()
    seconds = time.monotonic() - started
    await database.close()

    assert is_transient(raised.value)
    assert seconds < 0.4 + 2.0 + SLACK


async def test_a_connect_into_a_black_hole_ends_at_the_limit(proxy, proxied_dsn):
    proxy.black_hole()
    database = Database(proxied_dsn, connect_timeout=0.6)
    started = time.monotonic()

    with pytest.raises(DatabaseUnavailable):
        async with database.acquire():
            pytest.fail("nothing answers")
    seconds = time.monotonic() - started
    await database.close()

    assert seconds < 0.6 + SLACK


async def test_an_idle_connection_in_a_black_hole_is_found_out(proxy, proxied_dsn, monkeypatch):
    monkeypatch.setattr("app.db.IDLE_CHECK_SECONDS", 0.0)
    monkeypatch.setattr("app.db.PING_SECONDS", 0.3)
    database = Database(proxied_dsn, command_timeout=0.5)
    async with database.acquire() as connection:
        await connection.fetchval("SELECT 1")
    proxy.black_hole()
    started = time.monotonic()

    with pytest.raises(DatabaseUnavailable):
        async with database.acquire(1.0):
            pytest.fail("nothing answers")
    seconds = time.monotonic() - started
    proxy.heal()
    async with database.acquire(10) as connection:
        healed = await connection.fetchval("SELECT 1")
    await database.close()

    assert seconds < 1.0 + SLACK
    assert healed == 1


async def test_a_link_that_is_terminated_lets_go_at_once(proxy, proxied_dsn):
    database = Database(proxied_dsn, command_timeout=60)
    link = database.link()
    inside = asyncio.Event()

    async def wait_for_an_answer() -> None:
        async with link.acquire() as connection:
            await connection.fetchval("SELECT 1")
            proxy.black_hole()
            inside.set()
            await connection.fetchval("SELECT 1")

    waiting = asyncio.create_task(wait_for_an_answer())
    await inside.wait()
    await asyncio.sleep(0)
    started = time.monotonic()
    link.terminate()

    with pytest.raises(DATABASE_ERRORS):
        await waiting
    seconds = time.monotonic() - started
    await database.close()

    assert seconds < SLACK


async def test_closing_the_pool_does_not_wait_for_a_black_hole(proxy, proxied_dsn):
    database = Database(proxied_dsn)
    async with database.acquire() as connection:
        await connection.fetchval("SELECT 1")
    proxy.black_hole()
    started = time.monotonic()

    await database.close(0.3)

    assert time.monotonic() - started < 0.3 + SLACK


async def test_a_link_waits_no_longer_than_its_deadline(proxy, proxied_dsn):
    proxy.black_hole()
    database = Database(proxied_dsn, connect_timeout=30)
    started = time.monotonic()

    with pytest.raises(DatabaseUnavailable):
        async with database.link(started + 0.5).acquire(20):
            pytest.fail("nothing answers")
    seconds = time.monotonic() - started
    await database.close()

    assert seconds < 0.5 + SLACK
