"""These tests are many and small: they share a database that is emptied after each. One has a proxy in front."""

from collections.abc import AsyncIterator

import pytest

from tests.databases import clean, connect, direct_dsn, dsn
from tests.db.proxy import Proxy
from tests.servers import Server

__all__ = ["clean", "connect", "direct_dsn", "dsn"]


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[Proxy]:
    """A way to the server that can be made a black hole."""
    async with Proxy(server.host, server.port) as running:
        yield running


@pytest.fixture
def proxied_dsn(proxy: Proxy, direct_dsn: str) -> str:
    """The test's database, reached through the proxy."""
    name = direct_dsn.partition("?")[0].rpartition("/")[2]
    return f"postgresql://postgres@127.0.0.1:{proxy.port}/{name}"
