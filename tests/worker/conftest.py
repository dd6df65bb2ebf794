"""A worker that runs beside a test until the test is over."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from app.jobs.services import Services
from app.worker import work

Working = Callable[[Services], AbstractAsyncContextManager["asyncio.Task[None]"]]


@pytest.fixture
def working() -> Working:
    """Run a worker with short waits: `async with working(services): ...`; it is drained at the end."""

    @asynccontextmanager
    async def run(services: Services) -> AsyncIterator["asyncio.Task[None]"]:
        task = asyncio.create_task(work(services, poll_seconds=0.05, chore_seconds=0.2))
        try:
            yield task
        finally:
            services.stopping.set()
            async with asyncio.timeout(10):
                await asyncio.wait({task})
        task.result()

    return run
