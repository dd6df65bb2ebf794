"""`dormouse migrate` says what it applied, and may be run again, and by two at once."""

import asyncio
import secrets
from collections.abc import AsyncIterator

import asyncpg
import pytest

from app.migrate import HEAD
from tests.cli.conftest import Dormouse
from tests.servers import Server


@pytest.fixture
async def empty_dsn(server: Server) -> AsyncIterator[str]:
    name = f"e_{secrets.token_hex(6)}"
    admin = await asyncpg.connect(server.admin_dsn)
    await admin.execute(f'CREATE DATABASE "{name}"')
    yield server.dsn(name)
    await admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    await admin.close()


async def test_it_names_the_revisions_and_then_has_nothing_to_do(dormouse: Dormouse, empty_dsn: str) -> None:
    first = await dormouse("migrate", DATABASE_URL=empty_dsn)
    second = await dormouse("migrate", DATABASE_URL=empty_dsn)

    assert (first.code, second.code) == (0, 0)
    assert "applied 0001" in first.out
    assert f"at revision {HEAD} already" in second.out


async def test_two_at_once_apply_it_once(dormouse: Dormouse, empty_dsn: str) -> None:
    both = await asyncio.gather(*(dormouse("migrate", "--json", DATABASE_URL=empty_dsn) for _ in range(2)))

    assert [ended.code for ended in both] == [0, 0]
    assert sum(len(ended.json["applied"]) > 0 for ended in both) == 1


async def test_other_commands_say_that_the_schema_is_behind(dormouse: Dormouse, empty_dsn: str) -> None:
    for command in ("tick", "enqueue x", "jobs list", "bookings list", "worker"):
        ended = await dormouse(*command.split(), DATABASE_URL=empty_dsn)

        assert ended.code == 4, ended
        assert "dormouse migrate" in ended.err
        assert "Traceback" not in ended.err


async def test_a_missing_database_is_told(dormouse: Dormouse, server: Server) -> None:
    ended = await dormouse("migrate", DATABASE_URL=server.dsn("not_there"))

    assert ended.code == 3
    assert "Traceback" not in ended.err
