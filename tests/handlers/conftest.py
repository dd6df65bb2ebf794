"""What the tests of sending stand on: a provider that honours keys."""

from collections.abc import AsyncIterator

import pytest

from tests.handlers.provider import Provider, run_provider


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    """A provider that takes everything until it is told otherwise."""
    async with run_provider() as running:
        yield running
