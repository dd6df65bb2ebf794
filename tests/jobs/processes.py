"""Ticks in processes of their own, which may die: `start` begins one, `ended` gives its exit code and its summary."""

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from typing import Any

SECONDS = 60

PROGRAM = """
import asyncio, json, sys

from app.config import load_settings
from app.db import Database
from app.handlers import load_kinds
from app.jobs.services import Services
from app.log import setup_logging
from app.tick import Budget, run

async def main(ticks):
    settings = load_settings("database_url")
    setup_logging(settings)
    services = Services(settings, Database(settings.dsn), asyncio.Event(), load_kinds(settings))
    summaries = [(await run(services, Budget.from_settings(settings), "test")).as_dict() for _ in range(ticks)]
    await services.database.close()
    print(json.dumps(summaries))

asyncio.run(main(int(sys.argv[1])))
"""


@dataclass(frozen=True)
class Ended:
    """How a process ended: -9 is a kill."""

    code: int
    summaries: list[dict[str, Any]]
    log: str


async def start(dsn: str, ticks: int = 1, **settings: str) -> asyncio.subprocess.Process:
    """Begin a process that ticks *ticks* times, one after the other."""
    named = {"DATABASE_URL": dsn, "HANDLER_MODULES": "tests.jobs.toys", "PYTHONPATH": os.pathsep.join(sys.path)}
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PROGRAM,
        str(ticks),
        env=os.environ | named | settings,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def ended(process: asyncio.subprocess.Process) -> Ended:
    """Wait for a process to end; kill it when it does not."""
    try:
        async with asyncio.timeout(SECONDS):
            out, log = await process.communicate()
    except TimeoutError:
        process.kill()
        raise
    assert process.returncode is not None
    return Ended(process.returncode, json.loads(out) if out else [], log.decode())


async def tick_in_process(dsn: str, ticks: int = 1, **settings: str) -> Ended:
    """Tick in a process of its own, to its end."""
    return await ended(await start(dsn, ticks, **settings))
