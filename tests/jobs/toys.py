"""Kinds for processes of their own: HANDLER_MODULES names this module. Each run leaves a row in `ran`."""

import asyncio
import os
import signal

from app.jobs import Job, Kind

NOTE = "INSERT INTO ran (job_id, pid, attempt) VALUES ($1, $2, $3)"
TABLE = "CREATE TABLE ran (job_id bigint, pid int, attempt int)"


async def note(job: Job) -> None:
    """Leave a row behind."""
    async with job.services.database.acquire() as connection:
        await connection.execute(NOTE, job.id, os.getpid(), job.attempts)


async def kill(job: Job) -> None:
    """End this process as the kernel would, once its neighbours had their turn."""
    await note(job)
    os.kill(os.getpid(), signal.SIGKILL)


async def hang(job: Job) -> None:
    """Say that it runs, and end never."""
    await note(job)
    await asyncio.Event().wait()


HANDLERS = {"note": Kind(note), "kill": Kind(kill), "hang": Kind(hang)}
