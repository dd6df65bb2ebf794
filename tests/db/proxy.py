"""A TCP proxy on loopback that can fall silent: bytes are taken and go nowhere, and no connection is closed."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, Self


class Proxy:
    """Passes bytes on to *host*:*port*, until `black_hole` is called; `port` is its own."""

    def __init__(self, host: str, port: int) -> None:
        self._far_side = (host, port)
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self._is_open = asyncio.Event()
        self._is_open.set()
        self.port = 0
        self.accepted = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.close()

    def black_hole(self) -> None:
        """Take what is sent and pass nothing on, in either direction."""
        self._is_open.clear()

    def heal(self) -> None:
        """Pass on what was held back, and all that follows."""
        self._is_open.set()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self._writers.append(writer)
        self._start(self._connect(reader, writer))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._is_open.wait()
        far_reader, far_writer = await asyncio.open_connection(*self._far_side)
        self._writers.append(far_writer)
        self._start(self._pass_on(reader, far_writer))
        self._start(self._pass_on(far_reader, writer))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):  # either end may go at any time
            while data := await reader.read(65_536):
                await self._is_open.wait()
                writer.write(data)
                await writer.drain()
            writer.close()
