"""The program itself, run as its user runs it: `dormouse(...)` gives exit code, output and messages."""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from app.config import Settings

SECONDS = 60
PROGRAM = (sys.executable, "-P", "-m", "app.cli")


@dataclass(frozen=True)
class Ended:
    """How a run of the program ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Dormouse(Protocol):
    """Run the program with arguments, and with settings as keywords; DATABASE_URL is the test's own."""

    def __call__(self, *arguments: str, stdin: str = "", **settings: str) -> Awaitable[Ended]: ...


Spawn = Callable[..., Awaitable[asyncio.subprocess.Process]]


def environment(**settings: str) -> dict[str, str]:
    """Return an environment that holds these settings and no other."""
    ours = {name.upper() for name in Settings.model_fields}
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return kept | {"COLUMNS": "200", "NO_COLOR": "1"} | settings


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder for an embedded server; not below pytest's own, which a second pytest closes to the server's user."""
    with tempfile.TemporaryDirectory(prefix="dormouse-home-") as folder:
        yield Path(folder).resolve()


@pytest.fixture
async def spawn(tmp_path: Path) -> AsyncIterator[Spawn]:
    """Start the program in the test's own folder and return the running process; what still runs is ended after."""
    started: list[asyncio.subprocess.Process] = []

    async def start(*arguments: str, **settings: str) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            *PROGRAM,
            *arguments,
            cwd=tmp_path,
            env=environment(**settings),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.returncode is None:
            process.kill()
            await process.communicate()


@pytest.fixture
def dormouse(request: pytest.FixtureRequest, spawn: Spawn) -> Dormouse:
    """Run the program to its end."""
    defaults = {"DATABASE_URL": request.getfixturevalue("dsn")} if "dsn" in request.fixturenames else {}

    async def run(*arguments: str, stdin: str = "", **settings: str) -> Ended:
        process = await spawn(*arguments, **defaults | settings)
        async with asyncio.timeout(SECONDS):
            out, err = await process.communicate(stdin.encode())
        assert process.returncode is not None
        return Ended(process.returncode, out.decode(), err.decode())

    return run
