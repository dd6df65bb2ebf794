"""Our side beside `dormouse worker`, which runs as it is: filling the queue, and ticks without a server around them."""

import asyncio
import signal
import sys
import time
from typing import Any

import asyncpg
import uvloop

from app import tick
from app.config import load_settings
from app.db import Database
from app.handlers import load_kinds
from app.heap import freeze_start_up
from app.jobs import NewJob, enqueue, enqueue_many
from app.jobs.services import Services
from app.log import setup_logging
from app.migrate import migrate
from app.tick import Budget

TICK_JOBS = 10_000


async def single(dsn: str, jobs: int) -> float:
    """Enqueue *jobs* one by one, each in a transaction of its own; return the seconds."""
    connection = await asyncpg.connect(dsn)
    began = time.perf_counter()
    for number in range(jobs):
        await enqueue(connection, "noop", {"n": number})
    return time.perf_counter() - began


async def bulk(dsn: str, jobs: int) -> float:
    """Enqueue *jobs* from a generator, each row with a dedupe key and a result of its own; return the seconds."""
    return await _enqueue_all(dsn, jobs, has_keys=True)


async def fill(dsn: str, jobs: int) -> float:
    """Enqueue *jobs* in bulk, without keys, for a drain."""
    return await _enqueue_all(dsn, jobs, has_keys=False)


async def _enqueue_all(dsn: str, jobs: int, *, has_keys: bool) -> float:
    connection = await asyncpg.connect(dsn)
    began = time.perf_counter()
    made = (NewJob("noop", {"n": n}, dedupe_key=f"key-{n}" if has_keys else None) for n in range(jobs))
    taken = len({result.id for result in await enqueue_many(connection, made)})
    if taken != jobs:
        raise SystemExit(f"{taken} rows for {jobs} jobs")
    return time.perf_counter() - began


async def tick_on(dsn: str) -> None:
    """Run one tick after the other until SIGTERM."""
    settings = load_settings("DATABASE_URL")
    setup_logging(settings)
    made = Services(settings, Database(dsn, pool_max=settings.pool_max), asyncio.Event(), load_kinds(settings))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, made.stopping.set)
    freeze_start_up()
    while not made.stopping.is_set():
        await tick.run(made, Budget(TICK_JOBS, 100, 25.0))
    await made.database.close()


def main(command: str, dsn: str, jobs: str = "0") -> None:
    """Obey one command of the harness."""
    runners: dict[str, Any] = {"single": single, "bulk": bulk, "fill": fill}
    if command == "schema":
        asyncio.run(migrate(dsn))
    elif command in runners:
        print("S", uvloop.run(runners[command](dsn, int(jobs))), flush=True)
    else:
        uvloop.run(tick_on(dsn))


if __name__ == "__main__":
    main(*sys.argv[1:])
