"""The queue keeps its promises on a PostgreSQL of the distribution too, and behind PgBouncer in transaction mode."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.servers import SYSTEM_BIN, pgbouncer_program

ROOT = Path(__file__).parent.parent.parent
SECONDS = 120
CORE = [
    "tests/jobs/test_claim.py",
    "tests/jobs/test_completing.py",
    "tests/jobs/test_enqueue.py",
    "tests/jobs/test_group_commit.py",
    "tests/jobs/test_many_ticks.py",
    "tests/jobs/test_rescue.py",
]


def missing(server: str) -> list[str]:
    packages = [] if SYSTEM_BIN.exists() else ["postgresql"]
    return packages if server == "system" or pgbouncer_program() else [*packages, "pgbouncer"]


async def run_there(server: str) -> tuple[int, str]:
    """Run the core of the queue's tests on *server*; return pytest's exit code and its output."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--server={server}",
        *CORE,
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(SECONDS):
            out, _ = await process.communicate()
    except TimeoutError:
        process.send_signal(signal.SIGINT)  # its servers end with it
        out, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode()


@pytest.mark.parametrize("server", ["system", "pgbouncer"])
async def test_the_core_of_the_queue_holds_there_too(server):
    absent = missing(server)
    if absent and os.environ.get("CI") != "true":
        pytest.skip(f"not installed: {', '.join(absent)}")
    assert absent == []

    code, output = await run_there(server)

    assert code == 0, output
    assert "skipped" not in output
