"""`dormouse worker` runs what comes, and at SIGTERM finishes what runs and ends with 0."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Spawn

INSERT = "INSERT INTO jobs (kind) VALUES ('slow.job') RETURNING id"
STATUS = "SELECT status FROM jobs WHERE id = $1"
SLOW = """
from app.jobs import Kind

def slow(job):
    open("started", "w").close()
    open("go").close()

HANDLERS = {"slow.job": Kind(slow, timeout=60)}
"""


@pytest.fixture
def shop(tmp_path: Path, dsn: str) -> dict[str, str]:
    """A kind that says through a pipe that it has started, and through another waits for leave to end."""
    (tmp_path / "shop.py").write_text(SLOW)
    os.mkfifo(tmp_path / "started")
    os.mkfifo(tmp_path / "go")
    return {"HANDLER_MODULES": "shop", "DATABASE_URL": dsn}


async def opened(pipe: Path, mode: str) -> None:
    """Wait until the other side has opened *pipe* too."""
    async with asyncio.timeout(30):
        (await asyncio.to_thread(pipe.open, mode)).close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_drains_at_a_signal(
    spawn: Spawn, conn: Any, tmp_path: Path, shop: dict[str, str], number: int
) -> None:
    job = await conn.fetchval(INSERT)
    worker = await spawn("worker", "--poll-seconds", "0.05", **shop)
    await opened(tmp_path / "started", "r")

    worker.send_signal(number)
    await opened(tmp_path / "go", "w")
    _, messages = await worker.communicate()

    assert worker.returncode == 0, messages
    assert await conn.fetchval(STATUS, job) == "done"


async def test_a_kind_may_take_longer_than_a_tick(
    spawn: Spawn, conn: Any, tmp_path: Path, shop: dict[str, str]
) -> None:
    await conn.fetchval(INSERT)

    worker = await spawn("worker", TICK_BUDGET_SECONDS="5", **shop)

    await opened(tmp_path / "started", "r")
    await opened(tmp_path / "go", "w")
    worker.terminate()
    assert await worker.wait() == 0


async def test_a_database_that_is_away_is_waited_for_until_the_signal(spawn: Spawn) -> None:
    worker = await spawn("worker", DATABASE_URL="postgresql://nobody@127.0.0.1:1/none", CONNECT_TIMEOUT_SECONDS="0.2")
    assert worker.stderr is not None
    await worker.stderr.readline()

    worker.terminate()

    _, messages = await worker.communicate()
    assert worker.returncode == 0, messages
