"""A provider on loopback that honours keys as Resend does: what it has taken under a key it does not deliver again."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.channels.http_server import Request, answer

UNAVAILABLE = answer(503, {"name": "service_unavailable"})
REFUSED = answer(422, {"name": "validation_error"})
BAD_REQUEST = answer(400, {"name": "validation_error"})


@dataclass
class Provider:
    """What it answers: *reply* to all, *replies* first, *replies_to* by recipient; OK where none is named.

    *seconds* is how long it takes to answer; it takes a message before it answers, as others do.
    """

    reply: bytes | None = None
    replies: list[bytes] = field(default_factory=list)
    replies_to: dict[str, bytes] = field(default_factory=dict)
    seconds: float = 0.0
    port: int = 0
    requests: list[Request] = field(default_factory=list)
    delivered: dict[str, str] = field(default_factory=dict)
    _arrivals: asyncio.Condition = field(default_factory=asyncio.Condition)
    _open: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._open.set()

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that send mail here."""
        return {"email_url": "resend://re_0123456789@", "resend_base_url": f"http://127.0.0.1:{self.port}"}

    @property
    def keys(self) -> list[str]:
        """The keys that it was given, in order."""
        return [request.headers["idempotency-key"] for request in self.requests]

    @property
    def recipients(self) -> list[str]:
        """To whom it delivered, each as often as it did."""
        return sorted(self.delivered.values())

    async def arrived(self, count: int) -> None:
        """Wait until it has got *count* requests."""
        async with self._arrivals:
            await self._arrivals.wait_for(lambda: len(self.requests) >= count)

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Answer nobody until the block ends."""
        self._open.clear()
        try:
            yield
        finally:
            self._open.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one request, answer it and close."""
        try:
            request = await _read(reader)
            chosen = self._choose(request)
            async with self._arrivals:
                self.requests.append(request)
                self._arrivals.notify_all()
            await self._open.wait()
            await asyncio.sleep(self.seconds)  # the far side's slowness
            writer.write(chosen)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    def _choose(self, request: Request) -> bytes:
        to, key = request.json["to"][0], request.headers["idempotency-key"]
        chosen = self.replies.pop(0) if self.replies else self.replies_to.get(to, self.reply)
        if chosen is not None:
            return chosen
        self.delivered.setdefault(key, to)
        return answer(200, {"id": f"id-of-{key}"})


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:] if line)}
    return Request(head[0], headers, await reader.readexactly(int(headers["content-length"])))


@asynccontextmanager
async def run_provider(**options: Any) -> AsyncIterator[Provider]:
    """Run a provider until the block ends."""
    provider = Provider(**options)
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(provider.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    listener = await asyncio.start_server(accept, "127.0.0.1", 0)
    provider.port = listener.sockets[0].getsockname()[1]
    try:
        yield provider
    finally:
        listener.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
