"""pgqueuer at its best settings: batches of a hundred, no limit on jobs side by side, asyncpg on uvloop."""

import asyncio
import json
import signal
import sys
import time

import asyncpg
import uvloop
from counting import Count
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

CHUNK = 10_000
BATCH = 100
count = Count()


async def work(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Run jobs until SIGTERM."""
    queuer = PgQueuer(AsyncpgDriver(connection))

    @queuer.entrypoint("noop")
    async def noop(_job: Job) -> None:
        count.ran()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, queuer.shutdown.set)
    reporting = asyncio.create_task(count.report())
    await queuer.run(batch_size=BATCH)
    reporting.cancel()


async def obey(command: str, dsn: str, jobs: int) -> float:
    """Obey one command of the harness; return the seconds that it took."""
    connection = await asyncpg.connect(dsn)
    queries = Queries(AsyncpgDriver(connection))
    began = time.perf_counter()
    if command == "schema":
        await queries.install()
    elif command == "single":
        for _ in range(jobs):
            await queries.enqueue("noop", b"{}")
    elif command in ("bulk", "fill"):
        for start in range(0, jobs, CHUNK):
            numbers = range(start, min(start + CHUNK, jobs))
            payloads = [json.dumps({"n": number}).encode() for number in numbers]
            keys = [f"key-{number}" if command == "bulk" else None for number in numbers]
            size = len(numbers)
            await queries.enqueue(["noop"] * size, payloads, [0] * size, None, keys, on_conflict="skip")
    else:
        await work(connection)
    return time.perf_counter() - began


if __name__ == "__main__":
    print("S", uvloop.run(obey(sys.argv[1], sys.argv[2], int(sys.argv[3]))), flush=True)
