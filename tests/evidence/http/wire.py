"""Keep-alive connections that send given bytes and read one answer, many side by side.

A server that closes without an answer, or answers what cannot be read, is a failure: `Broken`.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

ANSWER_SECONDS = 30.0


class Broken(Exception):
    """The connection ended where an answer was owed."""


@dataclass(frozen=True)
class Reply:
    """One answer: its status, its head in lower case, its body."""

    status: int
    head: str
    body: bytes


@dataclass(eq=False)
class Line:
    """A connection to *port* that is opened when it is needed, and again when the server said that it closes."""

    port: int
    _reader: asyncio.StreamReader | None = field(default=None, init=False)
    _writer: asyncio.StreamWriter | None = field(default=None, init=False)

    async def ask(self, raw: bytes, *, is_head: bool = False) -> Reply:
        """Send *raw* and return its answer; raise Broken when none comes."""
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                self._writer.write(raw)
                reply = await self._read(is_head=is_head)
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError) as error:
            await self.close()
            raise Broken(type(error).__name__) from None
        if "connection: close" in reply.head:
            await self.close()
        return reply

    async def _read(self, *, is_head: bool) -> Reply:
        assert self._reader is not None
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = next((int(row[15:]) for row in head.split("\r\n") if row.startswith("content-length:")), None)
        status = int(head.split(" ", 2)[1])
        if length is None and status not in {204, 304}:
            raise Broken("an answer without a length")
        body = b"" if is_head else await self._reader.readexactly(length or 0)
        return Reply(status, head, body)

    async def close(self) -> None:
        """Hang up."""
        if self._writer is not None:
            self._writer.close()
            self._reader = self._writer = None


async def latencies(port: int, seconds: float, *, path: str = "/livez", pause: float = 0.004) -> list[float]:
    """Ask for *path* again and again for *seconds*, on one connection that stays, and return how long each took."""
    raw = f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode()
    line, took, until = Line(port), [], time.monotonic() + seconds
    while time.monotonic() < until:
        started = time.perf_counter()
        reply = await line.ask(raw)
        took.append(time.perf_counter() - started)
        assert reply.status == 200, reply
        await asyncio.sleep(pause)
    await line.close()
    return took


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which *share* of *values* lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
