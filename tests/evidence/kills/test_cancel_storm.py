"""A tick that is cancelled at any moment leaks no connection, leaves none in a transaction, and the pool is usable."""

import asyncio
import secrets
import time
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from app import tick
from app.jobs import NewJob, enqueue_many
from app.migrate import migrate
from app.tick import Budget
from tests.evidence.kills.checker import check, last_ticks, leases_are_over
from tests.evidence.kills.deeds import INSIDE, OUTSIDE, TABLES, read_marks
from tests.evidence.kills.roles import make_services, make_settings
from tests.evidence.kills.seeds import Chance, draw
from tests.servers import start_server

LEASE_SECONDS = 0.15
TRIED, LATEST = 3, 1.2
STOCK, LOOK_EVERY = 10, 5
POOL = 5
READY = "SELECT count(*) FROM jobs WHERE status = 'ready' AND crashes = 0"
BACKENDS = """
    SELECT count(*) AS all, count(*) FILTER (WHERE state LIKE 'idle in transaction%') AS in_transaction
    FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'dormouse'
"""


async def _storm(dsn: str, conn: Any, chance: Chance, file: Path, cancels: int) -> tuple[list[int], int]:
    """Cancel so many ticks of one process; return what was enqueued and how many ticks were cut short."""
    settings = make_settings(dsn, LEASE_SECONDS, tick_jobs=20, job_concurrency=4, pool_max=POOL, tick_budget_seconds=5)
    services = make_services(settings)
    enqueued, cut, whole = [], 0, 0.0
    for number in range(-TRIED, cancels):
        if number < 0 or number % LOOK_EVERY == 0:
            missing = STOCK - await conn.fetchval(READY)
            jobs = [
                NewJob(chance.choice((INSIDE, OUTSIDE)), {"file": str(file), "seconds": chance.uniform(0, 0.005)})
                for _ in range(missing)
            ]
            enqueued += [job.id for job in await enqueue_many(conn, jobs)]
        ticking = asyncio.create_task(tick.run(services, Budget.from_settings(settings), "storm"))
        began = time.monotonic()
        await asyncio.wait({ticking}, timeout=chance.uniform(0, LATEST * whole) if number >= 0 else None)
        if ticking.done():  # it was quick, or one of the first: this is how long a tick takes here and now
            whole = (
                max(whole, time.monotonic() - began) if number < 0 else 0.9 * whole + 0.1 * (time.monotonic() - began)
            )
        ticking.cancel()
        await asyncio.wait({ticking})
        cut += ticking.cancelled()
    async with services.database.acquire(1.0) as connection:
        assert await connection.fetchval("SELECT 1") == 1
    await services.database.close()
    return enqueued, cut


async def _play(dsn: str, direct: str, folder: Path, cancels: int) -> None:
    chance, file = draw(), folder / "marks"
    conn = await asyncpg.connect(direct)
    await conn.execute(TABLES)
    enqueued, cut = await _storm(dsn, conn, chance, file, cancels)
    await leases_are_over(conn)

    backends = await _left(conn)

    services = make_services(make_settings(dsn, 60))
    problems = await last_ticks(conn, services)
    await services.database.close()
    problems += await check(conn, enqueued, read_marks(file))
    await conn.close()
    print(f"{cancels} cancels, {cut} of them in mid-tick, {len(enqueued)} jobs, {backends} backends left")  # noqa: T201 - the figure of the nightly form
    assert backends == ((0, 0) if dsn == direct else (min(backends[0], 2), 0)), chance
    assert problems == [], chance
    assert cut > cancels / 10, "too few ticks were caught under way: this was no evidence"


async def _left(conn: Any) -> tuple[int, int]:
    """Count the backends that are left, and those of them in a transaction; a closing one takes a moment to go."""
    for _ in range(100):
        row = await conn.fetchrow(BACKENDS)
        if row["all"] == 0:
            break
        await asyncio.sleep(0.02)
    return row["all"], row["in_transaction"]


async def test_300_cancels_leak_no_connection(dsn: str, server: Any, tmp_path: Path) -> None:
    await _play(dsn, _direct(dsn, server), tmp_path, 300)


@pytest.mark.nightly
async def test_10_000_cancels_leak_no_connection(dsn: str, server: Any, tmp_path: Path) -> None:
    await _play(dsn, _direct(dsn, server), tmp_path, 10_000)


@pytest.mark.nightly
async def test_10_000_cancels_behind_a_pooler_leak_no_connection(scratch: Path, tmp_path: Path) -> None:
    with start_server("pgbouncer", scratch) as pooled:
        name = f"t_{secrets.token_hex(6)}"
        admin = await asyncpg.connect(pooled.admin_dsn)
        await admin.execute(f'CREATE DATABASE "{name}"')
        await admin.close()
        await migrate(pooled.direct(name))

        await _play(pooled.dsn(name), pooled.direct(name), tmp_path, 10_000)


def _direct(dsn: str, server: Any) -> str:
    """Return the address of the same database without a pooler: it is the server's own backends that are counted."""
    direct: str = server.direct(dsn.rsplit("/", 1)[1].partition("?")[0])
    return direct
