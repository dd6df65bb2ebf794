"""What evidence stands on: a database of its own, reached directly, for orders whose transactions stay open."""

import secrets
from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.evidence.explorer.explore import Explorer, open_explorer
from tests.servers import Server

PATIENCE_SECONDS = 8.0


@pytest.fixture
async def direct_dsn(server: Server) -> AsyncIterator[str]:
    """A fresh, migrated database that no pooler stands before: an open transaction would hold its whole pool."""
    name = f"e_{secrets.token_hex(6)}"
    admin = await asyncpg.connect(server.direct("postgres"))
    await admin.execute(f'CREATE DATABASE "{name}" TEMPLATE template_dormouse')
    yield server.direct(name)
    await admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    await admin.close()


@pytest.fixture
async def explorer(direct_dsn: str) -> AsyncIterator[Explorer]:
    """An explorer on a database of its own."""
    async with open_explorer(direct_dsn, PATIENCE_SECONDS) as opened:
        yield opened
