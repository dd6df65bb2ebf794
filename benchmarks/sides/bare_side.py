"""The limit: asyncpg alone claims and completes in batches, with no handler, no lease that is renewed and no summary.

One connection completes a batch while a second claims the next; rows are leased and durable like everybody's.
"""

import asyncio
import signal
import sys
import time
from typing import Any

import asyncpg
import uvloop
from counting import Count

from benchmarks.bare import CLAIM, COMPLETE, FILL, SCHEMA

BATCH = 500
INSERT = "INSERT INTO jobs (kind, payload) VALUES ('noop', '{}') RETURNING id"
INSERT_MANY = "INSERT INTO jobs (kind, payload) SELECT 'noop', p::jsonb FROM unnest($1::text[]) AS p RETURNING id"


async def schema(dsn: str, _jobs: int) -> float:
    connection = await asyncpg.connect(dsn)
    await connection.execute(SCHEMA)
    return 0.0


async def fill(dsn: str, jobs: int) -> float:
    connection = await asyncpg.connect(dsn)
    began = time.perf_counter()
    await connection.execute(FILL, jobs)
    return time.perf_counter() - began


async def single(dsn: str, jobs: int) -> float:
    connection = await asyncpg.connect(dsn)
    began = time.perf_counter()
    for _ in range(jobs):
        await connection.fetchval(INSERT)
    return time.perf_counter() - began


async def bulk(dsn: str, jobs: int) -> float:
    connection = await asyncpg.connect(dsn)
    began = time.perf_counter()
    for start in range(0, jobs, 10_000):
        await connection.fetch(INSERT_MANY, [f'{{"n":{n}}}' for n in range(start, min(start + 10_000, jobs))])
    return time.perf_counter() - began


async def work(dsn: str, _jobs: int) -> float:
    """Claim and complete until SIGTERM."""
    stopping, count = asyncio.Event(), Count()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    first, second = await asyncpg.connect(dsn), await asyncpg.connect(dsn)
    reporting = asyncio.create_task(count.report())
    rows = await first.fetch(CLAIM, BATCH)
    while not stopping.is_set():
        if not rows:
            await asyncio.sleep(0.02)
        for _ in rows:
            count.ran()
        _, rows = await asyncio.gather(first.execute(COMPLETE, [row["id"] for row in rows]), second.fetch(CLAIM, BATCH))
    reporting.cancel()
    return 0.0


def main(command: str, dsn: str, jobs: str = "0") -> None:
    """Obey one command of the harness."""
    runners: dict[str, Any] = {"schema": schema, "fill": fill, "single": single, "bulk": bulk, "work": work}
    print("S", uvloop.run(runners[command](dsn, int(jobs))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
