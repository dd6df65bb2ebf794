"""oban-py at its best settings: a thousand jobs side by side, on uvloop."""

import asyncio
import signal
import sys
import time
from typing import Any

import uvloop
from counting import Count
from oban import Oban, worker
from oban.schema import install

CHUNK = 1000
LIMIT = 1000
count = Count()


@worker(queue="default")
class Noop:
    """One worker, which only counts."""

    async def process(self, _job: Any) -> None:
        """Count."""
        count.ran()


async def work(pool: Any) -> None:
    """Run jobs until SIGTERM."""
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    reporting = asyncio.create_task(count.report())
    async with Oban(pool=pool, queues={"default": LIMIT}):
        await stopping.wait()
    reporting.cancel()


async def obey(command: str, dsn: str, jobs: int) -> float:
    """Obey one command of the harness; return the seconds that it took."""
    pool = await Oban.create_pool(dsn)
    client = Oban(pool=pool)
    began = time.perf_counter()
    if command == "schema":
        await install(pool)
    elif command == "single":
        for number in range(jobs):
            await client.enqueue(Noop.new({"n": number}))
    elif command in ("bulk", "fill"):
        for start in range(0, jobs, CHUNK):
            await client.enqueue_many(Noop.new({"n": n}) for n in range(start, min(start + CHUNK, jobs)))
    else:
        await work(pool)
    took = time.perf_counter() - began
    await pool.close()
    return took


if __name__ == "__main__":
    print("S", uvloop.run(obey(sys.argv[1], sys.argv[2], int(sys.argv[3]))), flush=True)
