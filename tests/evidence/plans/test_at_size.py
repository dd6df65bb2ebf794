"""The hot statements at the size of years: their plans, and how long a claim takes under an old snapshot.

tests/schema/test_plans.py pins the plans at a tenth of this in every run; here are 1,000,000 jobs done, 1,000,000 not
due and 100,000 due. An old REPEATABLE READ transaction keeps every dead row in the tables while 30,000 jobs go through.
"""

import asyncio
import secrets
import statistics
import time
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from app.jobs import queue, sweep
from app.jobs.queue import Verdict
from tests.evidence.http.wire import percentile
from tests.schema.big import drop, fill, make
from tests.schema.test_plans import HOT, explain, indexes, scans_whole
from tests.servers import Server

DONE, FUTURE, DUE = 1_000_000, 1_000_000, 100_000
P95_SECONDS = 0.050
CHURN = {"short": 6_000, "nightly": 30_000}
BATCH = 100
ENQUEUED = "INSERT INTO jobs (kind) SELECT 'toy' FROM generate_series(1, $1::int)"


@pytest.fixture(scope="module")
def huge_dsn(server: Server) -> Iterator[str]:
    """A database with years in it; no test changes it for good."""
    name = f"huge_{secrets.token_hex(6)}"
    asyncio.run(make(server, name, fill(DONE, FUTURE, DUE)))
    yield server.direct(name)
    asyncio.run(drop(server, name))


@pytest.mark.nightly
async def test_every_hot_statement_walks_its_index_among_two_million_rows(huge_dsn: str) -> None:
    connection: Any = await asyncpg.connect(huge_dsn, statement_cache_size=0, command_timeout=60)
    wrong = {}
    for mode in ("force_custom_plan", "force_generic_plan"):
        for name, (call, wanted) in HOT.items():
            async with connection.transaction():
                await connection.execute("SELECT set_config('plan_cache_mode', $1, TRUE)", mode)
                nodes = await explain(connection, call)
            if scans_whole(nodes) or not wanted <= indexes(nodes):
                wrong[name, mode] = (scans_whole(nodes), indexes(nodes))

    await connection.close()
    assert wrong == {}


@pytest.mark.nightly
async def test_claims_are_quick_among_two_million_rows_and_under_an_old_snapshot(huge_dsn: str) -> None:
    took = await _churn(huge_dsn, CHURN["nightly"])

    _judge(took, "2,100,000 rows")


@pytest.mark.parametrize("many", [pytest.param(many, id=name) for name, many in CHURN.items() if name == "short"])
async def test_claims_are_quick_under_an_old_snapshot(server: Server, many: int) -> None:
    name = f"old_{secrets.token_hex(6)}"
    await make(server, name, ENQUEUED.replace("$1::int", str(many)))

    took = await _churn(server.direct(name), many)

    await drop(server, name)
    _judge(took, f"{many} rows")


async def _churn(dsn: str, many: int) -> list[float]:
    """Claim and settle *many* jobs while a snapshot from before is held open; return how long each claim took."""
    reader: Any = await asyncpg.connect(dsn)
    worker: Any = await asyncpg.connect(dsn, statement_cache_size=0, command_timeout=60)
    took = []
    async with reader.transaction(isolation="repeatable_read"):
        await reader.fetchval("SELECT count(*) FROM ticks")
        for _ in range(many // BATCH):
            started = time.perf_counter()
            claimed = await queue.claim(worker, ["default"], ["toy"], BATCH, 60.0)
            took.append(time.perf_counter() - started)
            assert len(claimed) == BATCH
            verdicts = [Verdict(each.id, each.fence, "done") for each in claimed]
            assert len(await queue.settle(worker, verdicts)) == BATCH
            assert len(await sweep.rescue(worker, 1000, 3)) <= 1000
    await worker.close()
    await reader.close()
    return took


def _judge(took: list[float], among: str) -> None:
    p95 = percentile(took, 0.95)
    print(f"{len(took)} claims of {BATCH} among {among}: p50 {statistics.median(took):.4f} s, p95 {p95:.4f} s")  # noqa: T201 - the nightly figure
    assert p95 < P95_SECONDS
