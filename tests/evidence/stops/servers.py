"""Servers that are to be stopped: `dormouse serve`, forked or spawned, each with a proxy before its database.

Forked ones have their imports behind them and run the very code of the program; spawned ones are the program.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.jobs import enqueue
from tests.evidence.kills.nursery import KEPT, ROOT, Child, Nursery, last_words
from tests.evidence.kills.roles import SECRET
from tests.evidence.kills.seeds import Chance
from tests.servers import Server, free_port
from tests.tick.black_hole import BlackHole, black_hole
from tests.web.serving import request

START_SECONDS = 60.0
Start = Callable[[dict[str, str], int, str], Awaitable[Child]]


def fork_from(born: Nursery) -> Start:
    """Return a start that forks a server."""

    async def start(environment: dict[str, str], port: int, log: str) -> Child:
        return await born.fork("serve", environment=environment, port=port, log=log)

    return start


async def spawn(environment: dict[str, str], port: int, log: str) -> Child:
    """Start the program itself."""
    kept = {name: value for name, value in os.environ.items() if name in KEPT}
    argv = [sys.executable, "-m", "app.cli", "serve", "--host", "127.0.0.1", "--port", str(port)]
    end = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, cwd=ROOT, env=kept | environment, stdin=subprocess.DEVNULL, stdout=end, stderr=end
        )
    finally:
        os.close(end)
    return Child(process.pid, asyncio.ensure_future(process.wait()))


@dataclass(frozen=True)
class Scene:
    """What all servers of a run share."""

    server: Server
    dsn: str
    conn: Any
    folder: Path
    chance: Chance
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def marks(self) -> Path:
        """The file that jobs leave their marks in."""
        return self.folder / "marks"


@dataclass(eq=False)
class Serving:
    """One running server: it serves the queue q*number*, *hole* stands before its database."""

    scene: Scene
    number: int
    hole: BlackHole
    child: Child
    port: int
    log: str
    lines: AsyncExitStack

    async def send(self, data: bytes, *, has_answer: bool = False) -> None:
        """Send *data* on a connection that stays open until the server has ended."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.lines.callback(writer.close)
        writer.write(data)
        await writer.drain()
        if has_answer:
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")

    async def enqueue(self, kind: str) -> int:
        """Give the server a job that no other server can see."""
        payload = {"file": str(self.scene.marks), "seconds": 0.0}
        async with self.scene.turn:
            return (await enqueue(self.scene.conn, kind, payload, queue=f"q{self.number}")).id


@asynccontextmanager
async def serving(scene: Scene, number: int, start: Start) -> AsyncIterator[Serving]:
    """Run a server until the block ends, which is when it is killed if it has not ended by itself."""
    async with black_hole(scene.server) as hole, AsyncExitStack() as lines:
        port, log = free_port(), str(scene.folder / f"{number}.log")
        environment = {
            "DATABASE_URL": hole.dsn(scene.dsn),
            "CRON_SECRET": SECRET,
            "HANDLER_MODULES": "tests.evidence.kills.deeds",
            "QUEUES": f"q{number}",
        }
        child = await start(environment, port, log)
        try:
            await _answers(child, port, log)
            yield Serving(scene, number, hole, child, port, log, lines)
        finally:
            child.signal(signal.SIGKILL)
            await child.wait()


async def _answers(child: Child, port: int, log: str) -> None:
    """Wait until the server answers its first request."""
    async with asyncio.timeout(START_SECONDS):
        while child.is_alive:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            writer.write(request("GET", "/livez", "Connection: close"))
            await reader.read()
            writer.close()
            return
    raise AssertionError(last_words(log))
