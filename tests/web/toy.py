"""A guard before a toy application, called as plain ASGI: every byte and every message is the test's own."""

import asyncio
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from app.web.gates import Gate, Place, digests_of
from app.web.guard import PARSED, Guard

TOKEN = "gate-" + "k" * 40
GATE = Gate("/api/gated", digests_of(TOKEN))
OFF = Gate("/api/off", ())
PLACES = (
    Place("/open", re.compile("^/open$"), frozenset({"GET", "HEAD"}), None),
    Place("/api/gated", re.compile("^/api/gated$"), frozenset({"POST", "PUT"}), GATE),
    Place("/api/off", re.compile("^/api/off$"), frozenset({"POST"}), OFF),
)


@dataclass
class Got:
    """What came back, and how much of the request was asked for."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    received: int = 0

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the value that the guard parsed and the length of the body that it replays."""
    message = await receive()
    answer = {"parsed": scope.get(PARSED), "length": len(message.get("body", b""))}
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(answer).encode()})


async def call(
    method: str = "POST",
    path: str = "/api/gated",
    *,
    headers: Iterable[tuple[bytes, bytes]] = (),
    body: Iterable[bytes] = (b"",),
    query: bytes = b"",
    raw_path: bytes | None = None,
    app: Any = echo,
    never_ends: bool = False,
    stopping: asyncio.Event | None = None,
) -> Got:
    """Send one request through the guard; *body* comes in these pieces."""
    got, pieces = Got(), [bytes(piece) for piece in body]

    async def receive() -> Message:
        got.received += 1
        if not pieces:
            if never_ends:
                await asyncio.Event().wait()
            return {"type": "http.disconnect"}
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces) or never_ends}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            got.status = message["status"]
            got.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            got.body += message.get("body", b"")

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode() if raw_path is None else raw_path,
        "query_string": query,
        "headers": list(headers),
    }
    await Guard(app, PLACES, stopping or asyncio.Event())(scope, receive, send)
    return got


def bearer(token: bytes | str = TOKEN, scheme: bytes = b"Bearer ") -> tuple[bytes, bytes]:
    """Return an Authorization header with *token*."""
    return (b"authorization", scheme + (token.encode() if isinstance(token, str) else token))


JSON = (b"content-type", b"application/json")


async def send_json(body: bytes, method: str = "POST") -> Got:
    """Send *body* as JSON with the right token."""
    return await call(method, headers=[bearer(), JSON], body=[body])
