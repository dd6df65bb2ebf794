"""A PostgreSQL whose clock can be set, for the tests of this folder, and a fresh database on it for each."""

import asyncio
import secrets
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from app.config import Settings
from app.db import Database
from app.handlers import load_kinds
from app.jobs import Kind
from app.jobs.services import Services
from app.migrate import migrate
from tests.evidence.clocks.faked import Clock, clock_server

SECRET = "clock-" + "5c" * 20


@pytest.fixture(scope="session")
def clock(request: pytest.FixtureRequest) -> Iterator[Clock]:
    """A server of these tests' own, right until one sets it."""
    asked = request.config.getoption("--server")
    kind = "system" if asked == "pgbouncer" else asked
    with tempfile.TemporaryDirectory(prefix="dormouse-test-") as folder, clock_server(kind, Path(folder)) as running:
        yield running


@pytest.fixture
async def clocked_dsn(clock: Clock) -> AsyncIterator[str]:
    """A fresh, migrated database in which it is always Berlin's time."""
    name = f"c_{secrets.token_hex(6)}"
    admin = await asyncpg.connect(clock.server.admin_dsn)
    await admin.execute(f'CREATE DATABASE "{name}"')
    await admin.execute(f"ALTER DATABASE \"{name}\" SET timezone = 'Europe/Berlin'")
    await migrate(clock.server.direct(name))
    yield clock.server.direct(name)
    await admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    await admin.close()


@pytest.fixture
async def clocked(clocked_dsn: str) -> AsyncIterator[Any]:
    """A connection of the test's own to it."""
    connection = await asyncpg.connect(clocked_dsn, statement_cache_size=0)
    yield connection
    await connection.close()


@pytest.fixture
async def clocked_services(clocked_dsn: str, tmp_path: Path) -> AsyncIterator[Callable[..., Services]]:
    """Make the services of a process on it."""
    database = Database(clocked_dsn)

    def make(kinds: dict[str, Kind] | None = None, **overrides: Any) -> Services:
        values = {"database_url": clocked_dsn, "cron_secret": SECRET, "outbox_dir": str(tmp_path / "outbox")}
        settings = Settings(**values | overrides)
        return Services(settings, database, asyncio.Event(), load_kinds(settings) | (kinds or {}))

    yield make
    await database.close()
