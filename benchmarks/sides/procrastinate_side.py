"""procrastinate at its best settings: a hundred jobs side by side, LISTEN/NOTIFY on, the psycopg connector."""

import asyncio
import sys
import time
from typing import Any

from counting import Count
from procrastinate import App, PsycopgConnector

CHUNK = 1000
CONCURRENCY = 100
count = Count()


def make_app(dsn: str) -> Any:
    """Return an app with one task, which only counts."""
    app = App(connector=PsycopgConnector(conninfo=dsn))

    @app.task(name="noop")
    async def noop(**_arguments: int) -> None:
        count.ran()

    return app


async def obey(command: str, dsn: str, jobs: int) -> float:
    """Obey one command of the harness; return the seconds that it took."""
    app = make_app(dsn)
    async with app.open_async():
        began = time.perf_counter()
        if command == "schema":
            await app.schema_manager.apply_schema_async()
        elif command == "single":
            for number in range(jobs):
                await app.tasks["noop"].defer_async(n=number)
        elif command in ("bulk", "fill"):
            for start in range(0, jobs, CHUNK):
                batch = [{"n": number} for number in range(start, min(start + CHUNK, jobs))]
                await app.tasks["noop"].batch_defer_async(*batch)
        else:
            reporting = asyncio.create_task(count.report())
            await app.run_worker_async(concurrency=CONCURRENCY, install_signal_handlers=True)
            reporting.cancel()
        return time.perf_counter() - began


if __name__ == "__main__":
    print("S", asyncio.run(obey(sys.argv[1], sys.argv[2], int(sys.argv[3]))), flush=True)
