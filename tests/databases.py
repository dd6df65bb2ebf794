"""One database for test after test: emptied in between, and cloned anew when a test has altered more than rows.

Connections beside the test's own go past any pooler: a transaction held open must not hold one of its few places.
"""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from tests.servers import Server

Connect = Callable[[], Awaitable[Any]]

END_OTHERS = """
    SELECT pg_terminate_backend(pid, 5000)
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""

EMPTY = """
    DO $$
    BEGIN
        EXECUTE (
            SELECT 'TRUNCATE ' || string_agg(oid::regclass::text, ', ') || ' RESTART IDENTITY'
            FROM pg_class
            WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> 'alembic_version'
        );
    END
    $$
"""

# What a test may have altered beside rows; a fresh clone has the same.
SHAPE = """
    SELECT concat_ws(
        ' ',
        (SELECT string_agg(concat(relname, reloptions, relacl), ',' ORDER BY relname) FROM pg_class
         WHERE relnamespace = 'public'::regnamespace),
        (SELECT string_agg(conname, ',' ORDER BY conname) FROM pg_constraint
         WHERE connamespace = 'public'::regnamespace),
        (SELECT string_agg(proname, ',' ORDER BY proname) FROM pg_proc WHERE pronamespace = 'public'::regnamespace),
        (SELECT string_agg(tgname, ',' ORDER BY tgname) FROM pg_trigger WHERE NOT tgisinternal),
        (SELECT count(*) FROM pg_db_role_setting
         WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database()))
    )
"""


@pytest.fixture(scope="session")
def clean() -> list[tuple[str, str]]:
    """Databases that are as good as new, each with its shape."""
    return []


@pytest.fixture
async def dsn(server: Server, clean: list[tuple[str, str]]) -> AsyncIterator[str]:
    """A migrated database without rows."""
    name, shape = clean.pop() if clean else await _clone(server)
    yield server.dsn(name)
    inside = await asyncpg.connect(server.direct(name))
    await inside.execute(END_OTHERS)
    is_as_before = await inside.fetchval(SHAPE) == shape
    if is_as_before:
        await inside.execute(EMPTY)
        clean.append((name, shape))
    await inside.close()
    if not is_as_before:
        admin = await asyncpg.connect(server.admin_dsn)
        await admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
        await admin.close()


async def _clone(server: Server) -> tuple[str, str]:
    name = f"t_{secrets.token_hex(6)}"
    admin = await asyncpg.connect(server.admin_dsn)
    await admin.execute(f'CREATE DATABASE "{name}" TEMPLATE template_dormouse')
    await admin.close()
    inside = await asyncpg.connect(server.direct(name))
    shape: str = await inside.fetchval(SHAPE)
    await inside.close()
    return name, shape


@pytest.fixture
def direct_dsn(server: Server, dsn: str) -> str:
    """The test's database without a pooler in front."""
    return server.direct(urlsplit(dsn).path.removeprefix("/"))


@pytest.fixture
async def connect(direct_dsn: str) -> AsyncIterator[Connect]:
    """Open one more connection; all are closed after the test."""
    opened: list[Any] = []

    async def open_one() -> Any:
        opened.append(await asyncpg.connect(direct_dsn, statement_cache_size=0, command_timeout=30))
        return opened[-1]

    yield open_one
    for connection in opened:
        connection.terminate()
