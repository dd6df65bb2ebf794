"""A TCP proxy before the database that lets a statement, or its answer, vanish: no error, no end, just silence."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.servers import Server


@dataclass
class BlackHole:
    """Passes bytes on until a client sends *trigger*; then that connection, or *swallows_all*, hears nothing more.

    The statement with the trigger itself is lost, or, when *is_answer_lost*, only its answer.
    """

    server: Server
    trigger: bytes | None = None
    swallows_all: bool = True
    is_answer_lost: bool = False
    port: int = 0
    is_dark: bool = False
    _dark: set[asyncio.StreamWriter] = field(default_factory=set)
    _swallowed: asyncio.Event = field(default_factory=asyncio.Event)

    def dsn(self, dsn: str) -> str:
        """Return the address of the database of *dsn*, through here."""
        name = dsn.rpartition("/")[2].partition("?")[0]
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}"

    async def went_dark(self) -> None:
        """Wait until a statement has vanished, for half a minute at most."""
        async with asyncio.timeout(30):
            await self._swallowed.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Stand between one client and the database."""
        there, back = await asyncio.open_connection(self.server.host, self.server.pooler or self.server.port)
        ways = [
            asyncio.ensure_future(self._pass_on(reader, back, writer)),
            asyncio.ensure_future(self._pass_on(there, writer, writer)),
        ]
        try:
            await asyncio.gather(*ways, return_exceptions=True)
        finally:
            for way in ways:
                way.cancel()
            back.close()
            writer.close()

    async def _pass_on(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, client: asyncio.StreamWriter
    ) -> None:
        while chunk := await source.read(65536):
            if self.trigger is not None and self.trigger in chunk and target is not client:
                self.is_dark = self.swallows_all
                self._dark.add(client)
                self._swallowed.set()
                if self.is_answer_lost:
                    target.write(chunk)
                continue
            if not (self.is_dark or client in self._dark):
                target.write(chunk)
                await target.drain()
        target.close()


@asynccontextmanager
async def black_hole(server: Server, **options: object) -> AsyncIterator[BlackHole]:
    """Run the proxy until the block ends."""
    hole = BlackHole(server, **options)  # type: ignore[arg-type]  # the options are the fields
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(hole.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    listener = await asyncio.start_server(accept, "127.0.0.1", 0)
    hole.port = listener.sockets[0].getsockname()[1]
    try:
        yield hole
    finally:
        listener.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
