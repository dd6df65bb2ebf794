"""A proxy between a test and its database."""

from collections.abc import AsyncIterator

import pytest

from tests.db.proxy import Proxy
from tests.servers import Server


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
