"""A TCP proxy before PostgreSQL that counts statements and strikes at the one it is told to.

    pass | latency | black hole | reset | cut after N bytes of an answer | the answer to COMMIT dropped

It reads the frames that a client sends: an Execute or a Query runs a statement. Once a black hole is open nothing
passes any more, cancel requests and new connections included: they are taken and hear nothing.
"""

import asyncio
import contextlib
import re
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum

from tests.servers import Server

LATENCY_SECONDS = 2.0
LARGE = 1 << 60
CANCEL_REQUEST = 80877102
PARSE, BIND, EXECUTE, QUERY = b"P", b"B", b"E", b"Q"
SPACE = re.compile(rb"\s+")


class Fault(Enum):
    """What happens at the statement that is struck."""

    LATENCY = "every way takes 2 s more from there on"
    BLACK_HOLE = "it and all after it vanishes"
    LOST_ANSWER = "it is run, and then all vanishes"
    RESET = "the connection is reset before it"
    RESET_AFTER = "it is run, and the connection is reset"
    CUT = "its answer ends after some bytes"


@dataclass(eq=False)
class Pipe:
    """One client's connection: the statements it has *parsed*, by name, the one *bound*, and whether it *is_struck*."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    there: asyncio.StreamReader
    back: asyncio.StreamWriter
    is_struck: bool = False
    is_dark: bool = False
    parsed: dict[bytes, str] = field(default_factory=dict)
    bound: str = ""
    unread: bytes = b""
    has_started: bool = False

    def reset(self) -> None:
        """End both ways, the client's with a RST."""
        end = self.writer.get_extra_info("socket")
        with contextlib.suppress(OSError):  # the client has gone already
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()
        self.back.close()


@dataclass(eq=False)
class Proxy:
    """Strikes with *fault* once, when a statement runs that begins with *at*; at each such one if *is_repeated*.

    A cut lets *cut_after* bytes of the answer pass, counted from the very first byte when *at* is empty. *statements*
    holds the text of what was run, *passed* counts the bytes of all answers, *strikes* says how often it struck.
    """

    server: Server
    fault: Fault | None = None
    at: str | None = None
    cut_after: int = 0
    is_repeated: bool = False
    port: int = 0
    statements: list[str] = field(default_factory=list)
    is_slow: bool = False
    is_dark: bool = False
    strikes: int = 0
    passed: int = 0
    _listener: asyncio.Server | None = None
    _clients: dict[asyncio.Task[None], asyncio.StreamWriter] = field(default_factory=dict)

    def dsn(self, dsn: str) -> str:
        """Return the address of the database of *dsn*, through here."""
        name = dsn.rsplit("/", 1)[1].partition("?")[0]
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}?sslmode=disable"

    async def listen(self) -> None:
        """Take connections, on the port of before if there was one."""
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def refuse(self) -> None:
        """Cut every connection and take no new one: what a database does that is put to sleep."""
        if self._listener is not None:
            self._listener.close()
        await asyncio.sleep(0)  # who was accepted a moment ago is known then
        for task, writer in list(self._clients.items()):
            task.cancel()  # one that has not begun closes nothing itself
            writer.transport.abort()
        await asyncio.gather(*self._clients, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self.serve(reader, writer))
        self._clients[task] = writer
        task.add_done_callback(self._clients.pop)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Stand between one client and the database."""
        if self.is_dark:
            await self._swallow(reader)
            writer.close()
            return
        there, back = await asyncio.open_connection(self.server.host, self.server.pooler or self.server.port)
        pipe = Pipe(reader, writer, there, back, is_struck=self.fault is Fault.CUT and self.at == "")
        ways = [asyncio.ensure_future(self._ask(pipe)), asyncio.ensure_future(self._answer(pipe))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in (back, writer):
                end.close()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _swallow(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):  # either end may go at any time
            while await reader.read(65536):
                pass

    async def _ask(self, pipe: Pipe) -> None:
        with contextlib.suppress(OSError):  # either end may go at any time
            while chunk := await pipe.reader.read(65536):
                if self.is_slow:
                    await asyncio.sleep(LATENCY_SECONDS)
                if not self.is_dark and not pipe.is_dark and self._may_pass(pipe, chunk):
                    pipe.back.write(chunk)
                    await pipe.back.drain()

    async def _answer(self, pipe: Pipe) -> None:
        with contextlib.suppress(OSError):  # either end may go at any time
            while chunk := await pipe.there.read(65536):
                if pipe.is_struck:
                    chunk = self._spoil(pipe, chunk)
                if self.is_dark or pipe.is_dark:
                    continue
                if chunk:
                    self.passed += len(chunk)
                    pipe.writer.write(chunk)
                    await pipe.writer.drain()

    def _may_pass(self, pipe: Pipe, chunk: bytes) -> bool:
        """Count the statements in *chunk* and strike at the one that is meant; say whether it goes on."""
        passes = True
        for kind, body in _frames(pipe, chunk):
            first, _, rest = body.partition(b"\0")
            if kind == PARSE:
                pipe.parsed[first] = _text(rest)
            elif kind == BIND:
                pipe.bound = pipe.parsed[rest.partition(b"\0")[0]]
            elif kind == QUERY:
                pipe.bound = _text(first)
            if kind in {EXECUTE, QUERY}:
                self.statements.append(pipe.bound)
                passes = not self._is_meant(pipe.bound) or self._strike(pipe)
        return passes

    def _is_meant(self, text: str) -> bool:
        is_over = self.strikes > 0 and not self.is_repeated
        return bool(self.fault and self.at and not is_over and text.startswith(self.at))

    def _strike(self, pipe: Pipe) -> bool:
        self.strikes += 1
        if self.fault is Fault.LATENCY:
            self.is_slow = True
        elif self.fault is Fault.BLACK_HOLE:
            self.is_dark = True
        elif self.fault is Fault.RESET:
            pipe.reset()
        else:
            pipe.is_struck = True
        return self.fault not in {Fault.BLACK_HOLE, Fault.RESET}

    def _spoil(self, pipe: Pipe, chunk: bytes) -> bytes:
        """Return what of an answer to the struck statement still passes."""
        if self.fault is Fault.LATENCY or (self.fault is Fault.CUT and len(chunk) <= self.cut_after):
            self.cut_after -= len(chunk)
            return chunk
        if self.fault is Fault.CUT:
            pipe.writer.write(chunk[: self.cut_after])
            pipe.writer.close()
            pipe.is_dark = True
            self.strikes, self.cut_after = max(1, self.strikes), LARGE if self.at == "" else 0
            return b""
        if self.fault is Fault.LOST_ANSWER:
            self.is_dark = True
        else:
            pipe.is_dark = True
            pipe.reset()
        return b""


def _text(statement: bytes) -> str:
    return SPACE.sub(b" ", statement.partition(b"\0")[0]).decode(errors="replace").strip()


def _frames(pipe: Pipe, chunk: bytes) -> list[tuple[bytes, bytes]]:
    """Return the kind and the body of every frame that *chunk* completes."""
    found, data = [], pipe.unread + chunk
    if not pipe.has_started and len(data) >= 8:
        size = int.from_bytes(data[:4])
        pipe.has_started = int.from_bytes(data[4:8]) != CANCEL_REQUEST
        data = data[size:]
    while pipe.has_started and len(data) >= 5 and len(data) > (size := int.from_bytes(data[1:5])):
        kind, body, data = data[:1], data[5 : size + 1], data[size + 1 :]
        found.append((kind, body))
    pipe.unread = data
    return found


@asynccontextmanager
async def proxy(
    server: Server, fault: Fault | None = None, at: str | None = None, cut_after: int = 0, *, is_repeated: bool = False
) -> AsyncIterator[Proxy]:
    """Run the proxy until the block ends."""
    made = Proxy(server, fault, at, cut_after, is_repeated)
    await made.listen()
    try:
        yield made
    finally:
        await made.refuse()
