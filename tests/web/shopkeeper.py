"""Handlers that a test's server is given: one that waits until it is told to stop, and one that never listens."""

import asyncio

from app.jobs import Job, Kind


async def wait_for_stop(job: Job) -> None:
    """Run until the process is told to end."""
    await job.services.stopping.wait()


async def never_listen(_job: Job) -> None:
    """Run on, whatever happens around it."""
    await asyncio.sleep(20)


HANDLERS = {"test.wait": Kind(wait_for_stop, timeout=20), "test.deaf": Kind(never_listen, timeout=20)}
