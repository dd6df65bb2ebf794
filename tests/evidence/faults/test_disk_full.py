"""The database's disk is full: writes are refused with 503, reads go on, and it recovers alone when there is room.

Only root can mount a small disk, and filling it takes a while: this is for the night.
"""

import asyncio
import secrets
from collections import Counter
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from app.migrate import migrate
from tests.evidence.faults.clients import Client, open_client
from tests.evidence.faults.cluster import cluster, is_root, small_disk

MEGABYTES, BALLAST = 90, 10
TEXT_BYTES = 120_000
TRIES_MOST = 3_000
FULL_TRIES = 20


async def _fill(client: Client, codes: Counter[int]) -> set[str]:
    """Write until nothing more goes in; return the keys that were acknowledged."""
    acked: set[str] = set()
    for number in range(TRIES_MOST):
        answer = await client.enqueue_text(f"k{number}", secrets.token_hex(TEXT_BYTES // 2))
        codes[answer.status_code] += 1
        if answer.status_code == 201:
            acked.add(f"k{number}")
        elif codes.total() - codes[201] >= FULL_TRIES:
            break
    return acked


@pytest.mark.nightly
@pytest.mark.skipif(not is_root(), reason="only root can mount a disk of its own")
async def test_a_full_disk_refuses_writes_serves_reads_and_recovers_alone(scratch: Path) -> None:
    place, codes = scratch / "disk", Counter[int]()
    with small_disk(place, MEGABYTES) as disk, cluster(scratch, disk / "data") as running:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(BALLAST << 20))
        dsn = running.server.direct("postgres")
        await migrate(dsn)
        async with open_client(dsn) as client:
            assert (await client.book("before")).status_code == 201

            acked = await _fill(client, codes)
            reads = [(await client.list_bookings()).status_code for _ in range(10)]
            ticked = (await client.tick()).status_code
            ballast.unlink()
            after = await _first_write(client)

        conn: Any = await asyncpg.connect(dsn)
        present = {row["dedupe_key"] for row in await conn.fetch("SELECT dedupe_key FROM jobs")}
        await conn.close()

    print(f"full after {codes[201]} jobs: {dict(codes)}, reads {set(reads)}, tick {ticked}, then {after}")  # noqa: T201 - nightly's figure
    assert set(codes) == {201, 503}
    assert set(reads) == {200}
    assert ticked in {200, 503}
    assert after == 201
    assert acked <= present


async def _first_write(client: Client) -> int:
    """Return the status of the first write that is taken, or of the last try within ten seconds."""
    status = 0
    for number in range(20):
        status = (await client.enqueue(f"after-{number}")).status_code
        if status == 201:
            break
        await asyncio.sleep(0.5)
    return status
