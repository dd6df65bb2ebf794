"""HANDLER_MODULES of the benchmarks: one kind that does nothing but count, one that takes its time."""

import asyncio

from counting import Count

from app.jobs import Job, Kind

SLOW_SECONDS = 0.3
count = Count()
reporting: list["asyncio.Task[None]"] = []


async def noop(_job: Job) -> None:
    """Count."""
    if not reporting:
        reporting.append(asyncio.create_task(count.report()))
    count.ran()


async def slow(_job: Job) -> None:
    """Wait as a handler that calls somebody else's service does."""
    await asyncio.sleep(SLOW_SECONDS)


HANDLERS = {"noop": Kind(noop), "slow": Kind(slow)}
