"""What was acknowledged is there after PostgreSQL has crashed, however it did: stopped at once, or killed.

Writers enqueue without a pause, each job under a key of its own; after an error they repeat the same key. Real power
loss, with the page cache gone, is not shown here.
"""

import asyncio
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from app.db import DATABASE_ERRORS, Database, is_transient
from app.jobs import enqueue
from app.migrate import migrate
from tests.evidence.faults.cluster import Cluster, cluster
from tests.evidence.kills.seeds import Chance, draw

WRITERS = 4
NAME = "postgres"


class Book:
    """What writers were told: *acked* keys, and *strange* errors, which none may be."""

    def __init__(self) -> None:
        self.acked: set[str] = set()
        self.strange: list[BaseException] = []
        self.repeats = 0
        self.is_over = False


async def _write_on(database: Database, name: str, book: Book) -> None:
    """Enqueue one job after the other until the book is closed; repeat what was not acknowledged."""
    number = 0
    while not book.is_over:
        key = f"{name}-{number}"
        try:
            async with database.acquire(5.0) as connection, connection.transaction():
                await enqueue(connection, "note.taken", {"n": number}, dedupe_key=key)
        except DATABASE_ERRORS as error:
            book.repeats += 1
            if not is_transient(error):
                book.strange.append(error)
            await asyncio.sleep(0.02)
            continue
        book.acked.add(key)
        number += 1


async def _crash_again_and_again(running: Cluster, book: Book, chance: Chance, crashes: int) -> None:
    for number in range(crashes):
        before = len(book.acked)
        async with asyncio.timeout(30):
            while len(book.acked) < before + 50:  # noqa: ASYNC110 - the writers do not know what is enough
                await asyncio.sleep(0.02)
        await asyncio.sleep(chance.uniform(0, 0.2))
        await asyncio.to_thread(running.kill if number % 2 else running.crash)
        await asyncio.to_thread(running.start)


async def _play(folder: Path, crashes: int) -> None:
    chance, book = draw(), Book()
    with cluster(folder) as running:
        dsn = running.server.direct(NAME)
        await migrate(dsn)
        database = Database(dsn)
        writers = [asyncio.create_task(_write_on(database, f"w{number}", book)) for number in range(WRITERS)]
        try:
            await _crash_again_and_again(running, book, chance, crashes)
        finally:
            book.is_over = True
            await asyncio.gather(*writers)
            await database.close()

        conn: Any = await asyncpg.connect(dsn)
        keys = [row["dedupe_key"] for row in await conn.fetch("SELECT dedupe_key FROM jobs")]
        await conn.close()

    lost = book.acked - set(keys)
    print(f"{crashes} crashes, {len(book.acked)} acknowledged, {len(lost)} lost, {book.repeats} repeated")  # noqa: T201 - nightly's figure
    assert lost == set(), chance
    assert len(keys) == len(set(keys)) == len(book.acked), chance
    assert book.strange == [], chance


async def test_5_crashes_lose_nothing_that_was_acknowledged(scratch: Path) -> None:
    await _play(scratch, 5)


@pytest.mark.nightly
async def test_100_crashes_lose_nothing_that_was_acknowledged(scratch: Path) -> None:
    await _play(scratch, 100)
