"""What these tests share: a log that keeps silent, the server itself, and a folder for servers of their own."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from tests.evidence.kills.roles import be_quiet
from tests.servers import Server


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """Log nothing: thousands of ticks would drown what a failure has to say."""
    before = structlog.get_config()
    be_quiet()
    yield
    structlog.configure(**before)


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder for a server of its own; not below pytest's, which a second pytest closes to the server's user."""
    with tempfile.TemporaryDirectory(prefix="dormouse-test-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def server(server: Server) -> Server:
    """The run's server, never through its pooler: a process that stands still would hold one of its two places."""
    return Server(server.host, server.port)
