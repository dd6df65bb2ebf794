"""One tick in a process of its own, for a test to kill: `python -m tests.tick.child`, with the product's settings.

The kind `effect.written` writes its key into the table `effects`; one whose payload says `kill` ends the process.
"""

import asyncio
import os
import signal

from app import tick
from app.config import load_settings
from app.db import Database
from app.handlers import load_kinds
from app.jobs import Job, Kind
from app.jobs.services import Services

WRITE = "INSERT INTO effects (job_id, key) VALUES ($1, $2)"


async def write_effect(job: Job) -> None:
    """Do what can be counted, and die if the payload says so."""
    async with job.services.database.acquire() as connection:
        await connection.execute(WRITE, job.id, job.idempotency_key)
    if job.payload.get("kill"):
        os.kill(os.getpid(), signal.SIGKILL)


HANDLERS = {"effect.written": Kind(write_effect)}


async def main() -> None:
    """Run one tick."""
    settings = load_settings("DATABASE_URL")
    database = Database(settings.dsn)
    services = Services(settings, database, asyncio.Event(), load_kinds(settings) | HANDLERS)
    await tick.run(services, tick.Budget.from_settings(settings), "child")
    await database.close()


if __name__ == "__main__":
    asyncio.run(main())
