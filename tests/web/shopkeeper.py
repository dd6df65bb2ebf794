"""Handlers that a test's server is given: one that waits until it is told to stop, and one that never listens."""

import asyncio
from pathlib import Path

from app.jobs import Job, Kind


async def wait_for_stop(job: Job) -> None:
    """Touch the file that the payload names, and run until the process is told to end."""
    _say_started(job)
    await job.services.stopping.wait()


async def never_listen(job: Job) -> None:
    """Touch the file that the payload names, and run on, whatever happens around it."""
    _say_started(job)
    await asyncio.sleep(20)


def _say_started(job: Job) -> None:
    Path(job.payload["started"]).touch()


HANDLERS = {"test.wait": Kind(wait_for_stop, timeout=20), "test.deaf": Kind(never_listen, timeout=20)}
