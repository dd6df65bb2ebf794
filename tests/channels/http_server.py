"""An HTTP server on loopback that gives one answer, byte for byte, and remembers what it was asked."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

DROP = b"drop"
HANG = b"hang"


@dataclass
class Request:
    """One request: its first line, its headers in lower case, its body."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass
class HttpServer:
    """What the server answers, and what it was asked."""

    answer: bytes
    port: int = 0
    requests: list[Request] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Its base address."""
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one request, answer it and close."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
            raw = dict(line.split(": ", 1) for line in head[1:] if line)
            original = {name.lower(): value for name, value in raw.items()}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.requests.append(Request(head[0], original, body))
            if self.answer == HANG:
                await asyncio.Event().wait()
            if self.answer != DROP:
                writer.write(self.answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


def answer(status: int, body: Any = None, **headers: str) -> bytes:
    """Write an answer; header names take underscores for hyphens."""
    content = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(content)}", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + content


@asynccontextmanager
async def http_server(raw_answer: bytes) -> AsyncIterator[HttpServer]:
    """Run a server that gives *raw_answer*."""
    server = HttpServer(raw_answer)
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(server.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    listener = await asyncio.start_server(accept, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
