"""What every test stands on: a real PostgreSQL for the run, a fresh migrated database for each test that asks.

server (one a run) -> template database (migrated once) -> dsn (a clone, emptied after each test) -> conn, services
"""

import asyncio
import compileall
import secrets
import tempfile
from collections.abc import AsyncIterator, Callable, Generator, Iterator
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
from tests.databases import clean, connect, direct_dsn, dsn
from tests.quiet import is_quiet, turn
from tests.servers import Server, start_server

__all__ = ["clean", "connect", "direct_dsn", "dsn"]

CRON_SECRET = "tick-" + secrets.token_hex(24)


def pytest_configure(config: pytest.Config) -> None:
    """Compile the product once, as its image does: each of the many programs started here would do it anew."""
    if not hasattr(config, "workerinput"):
        compileall.compile_dir("app", quiet=2)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let a test that measures time run alone: it would measure its neighbours."""
    with turn(alone=is_quiet(item.path)):
        return (yield)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--server", default="embedded", choices=["embedded", "system", "pgbouncer"])


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """The run's server; not below pytest's own folder, which a second pytest closes to the server's user."""
    with (
        tempfile.TemporaryDirectory(prefix="dormouse-test-") as folder,
        start_server(request.config.getoption("--server"), Path(folder)) as started,
    ):
        asyncio.run(_make_template(started))
        yield started


async def _make_template(server: Server) -> None:
    admin = await asyncpg.connect(server.admin_dsn)
    await admin.execute("CREATE DATABASE template_dormouse")
    await admin.close()
    await migrate(server.direct("template_dormouse"))


@pytest.fixture
async def database(dsn: str) -> AsyncIterator[Database]:
    """The app's own pool on the test's database."""
    opened = Database(dsn)
    yield opened
    await opened.close()


@pytest.fixture
async def conn(dsn: str) -> AsyncIterator[Any]:
    """A connection of the test's own."""
    connection = await asyncpg.connect(dsn, statement_cache_size=0)
    yield connection
    await connection.close()


@pytest.fixture
def settings(request: pytest.FixtureRequest, tmp_path: Any) -> Callable[..., Settings]:
    """Make settings for the test's database; keywords override."""

    def make(**overrides: Any) -> Settings:
        values: dict[str, Any] = {
            "database_url": request.getfixturevalue("dsn") if "dsn" in request.fixturenames else None,
            "cron_secret": CRON_SECRET,
            "outbox_dir": str(tmp_path / "outbox"),
        }
        return Settings(**values | overrides)

    return make


@pytest.fixture
def services(dsn: str, database: Database, settings: Callable[..., Settings]) -> Callable[..., Services]:
    """Make the services of a process: `services(kinds={...}, job_concurrency=3)`."""

    def make(kinds: dict[str, Kind] | None = None, **overrides: Any) -> Services:
        chosen = settings(**overrides)
        return Services(chosen, database, asyncio.Event(), (load_kinds(chosen) | (kinds or {})))

    return make
