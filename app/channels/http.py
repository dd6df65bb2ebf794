"""One HTTP exchange, the only place that knows httpx: its successor changes this file alone.

No redirect is followed, no proxy variable is read, certificates are checked, the whole exchange has one
limit, and no more than 64 KiB of an answer is read unless the caller asks for more.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.channels.tls import tls_context
from app.errors import MaybeSent, NotSent

SUCCESS = range(200, 300)
ANSWER_MAX = 64 * 1024
REQUEST_LEAVES = ".send_request_headers.started"


@dataclass(frozen=True, repr=False)
class Reply:
    """An answer: header names in lower case, the body cut where the caller's limit is."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_success(self) -> bool:
        """Whether the far side says that it did what was asked."""
        return self.status in SUCCESS


async def exchange(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes | None = None,
    seconds: float,
    answer_max: int = ANSWER_MAX,
) -> Reply:
    """Send one request and return the answer, whatever its status, within *seconds* in all.

    Of its body, *answer_max* bytes are read.

    Raise NotSent when the request surely did not leave, MaybeSent when it left and its answer is lost.
    """
    import httpx  # noqa: PLC0415 - a tick's cold start must not pay for it

    left = asyncio.Event()

    async def watch(event: str, _details: Mapping[str, Any]) -> None:
        if event.endswith(REQUEST_LEAVES):
            left.set()

    # A handshake that httpx gives up itself is closed; one that is cancelled leaves its socket open.
    limits = httpx.Timeout(seconds, connect=seconds / 2)
    try:
        async with (
            asyncio.timeout(seconds),
            httpx.AsyncClient(verify=tls_context(), trust_env=False, timeout=limits) as client,
            client.stream(method, url, headers=dict(headers), content=body, extensions={"trace": watch}) as answer,
        ):
            return Reply(answer.status_code, _lower(answer.headers), await _capped(answer, answer_max))
    except (httpx.HTTPError, OSError) as error:
        kind = MaybeSent if left.is_set() else NotSent
        raise kind(f"http: no answer ({type(error).__name__})") from None


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


async def _capped(answer: Any, most: int) -> bytes:
    """Read the body as it came, not inflated: a small answer must not become a large one."""
    body = bytearray()
    async for chunk in answer.aiter_raw():
        body += chunk
        if len(body) >= most:
            break
    return bytes(body[:most])
