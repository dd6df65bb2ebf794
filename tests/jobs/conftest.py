"""Connections beside the test's own, past any pooler: a transaction held open must not hold one of its few places."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from tests.servers import Server

Connect = Callable[[], Awaitable[Any]]


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
