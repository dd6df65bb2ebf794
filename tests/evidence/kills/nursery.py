"""The test's side of the fork server: children by name, signals to them, and how they ended."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "DORMOUSE_CI_RUN")


@dataclass(eq=False)
class Child:
    """One forked process."""

    pid: int
    ended: asyncio.Future[int]

    @property
    def is_alive(self) -> bool:
        return not self.ended.done()

    def signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.is_alive:
            with contextlib.suppress(ProcessLookupError):  # it ended between the question and the signal
                os.kill(self.pid, number)

    async def wait(self, seconds: float = 20.0) -> int:
        """Return its exit code, negative for a signal; raise TimeoutError."""
        async with asyncio.timeout(seconds):
            return await asyncio.shield(self.ended)


@dataclass(eq=False)
class Nursery:
    """A running fork server, and the children it has."""

    process: asyncio.subprocess.Process
    children: dict[int, Child] = field(default_factory=dict)
    _asked: list[asyncio.Future[Child]] = field(default_factory=list)

    async def fork(self, role: str, **asked: Any) -> Child:
        """Return a new child in the *role*."""
        assert self.process.stdin is not None
        started: asyncio.Future[Child] = asyncio.get_running_loop().create_future()
        self._asked.append(started)
        self.process.stdin.write(json.dumps({"role": role, **asked}).encode() + b"\n")
        async with asyncio.timeout(20):
            return await started

    async def listen(self) -> None:
        """Take note of what starts and ends until the server does."""
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            word, pid, *status = line.decode().split()
            if word == "started":
                child = Child(int(pid), asyncio.get_running_loop().create_future())
                self.children[child.pid] = child
                self._asked.pop(0).set_result(child)
            else:
                self.children.pop(int(pid)).ended.set_result(int(status[0]))


def last_words(log: str) -> str:
    """Return the end of what the children have written to *log*."""
    path = Path(log)
    return path.read_text()[-2000:] if path.exists() else ""


@asynccontextmanager
async def nursery(*modules: str) -> AsyncIterator[Nursery]:
    """Run a fork server that has imported *modules* too until the block ends; what it has forked ends with it."""
    kept = {name: value for name, value in os.environ.items() if name in KEPT}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.evidence.kills.fork_server",
        *modules,
        cwd=ROOT,
        env=kept,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    made = Nursery(process)
    listening = asyncio.create_task(made.listen())
    try:
        yield made
    finally:
        for child in list(made.children.values()):
            child.signal(signal.SIGCONT)
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(10):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        await listening
        for child in made.children.values():
            child.ended.set_result(-signal.SIGKILL)
