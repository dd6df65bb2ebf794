"""A command's work, at the database or at a running service: `--url https://…` sends the same question to its API.

    ask --no url--> on_connection(desk.…)        --url--> HTTP, with ADMIN_TOKEN from the environment

Both answer with the same JSON object, so that a command shows one thing and knows nothing of the way.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import typer

from app.channels.http import Reply, exchange
from app.cli.session import on_connection
from app.config import load_settings
from app.db import Connection
from app.errors import BadInput, ConfigError, Conflict, DatabaseUnavailable, NotFound, SendError

SECONDS = 30.0
ANSWER_MAX = 16 * 1024 * 1024
ADDRESS = re.compile(
    r"(https://[^\s/?#@]+|http://(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?)(/[^\s?#]*)?", re.IGNORECASE
)

Url = Annotated[
    str | None,
    typer.Option("--url", help="Ask this service, with ADMIN_TOKEN, instead of the database.", show_default=False),
]


@dataclass(frozen=True, slots=True)
class Call:
    """One request to the operator's API; *path* is below /api/admin, its pieces quoted."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None


def piece(text: object) -> str:
    """Return *text* as a piece of a path."""
    return quote(str(text), safe="")


def ask(url: str | None, call: Call, work: Callable[[Connection], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    """Return what *call* answers at *url*, or what *work* returns at the database when there is none.

    Raise what the database would raise: NotFound, Conflict, BadInput, DatabaseUnavailable; ConfigError for a token
    that is refused.
    """
    if url is None:
        return on_connection(work)
    return asyncio.run(_send(_checked(url), call))


def _checked(url: str) -> str:
    if not ADDRESS.fullmatch(url):
        raise BadInput("--url is https://host, or http:// on this machine: the token must not travel in the clear.")
    return url.rstrip("/")


async def _send(url: str, call: Call) -> dict[str, Any]:
    token = load_settings("ADMIN_TOKEN").admin_token
    assert token is not None  # noqa: S101 - load_settings has required it
    given = {name: str(value) for name, value in call.query.items() if value is not None}
    address = f"{url}/api/admin{call.path}" + (f"?{urlencode(given)}" if given else "")
    headers = {"Authorization": f"Bearer {token.get_secret_value()}", "Content-Type": "application/json"}
    body = None if call.method == "GET" else json.dumps(call.body).encode() if call.body is not None else b""
    try:
        reply = await exchange(call.method, address, headers=headers, body=body, seconds=SECONDS, answer_max=ANSWER_MAX)
    except SendError:
        raise DatabaseUnavailable("the service does not answer at this address.") from None
    return _judge(reply)


def _judge(reply: Reply) -> dict[str, Any]:
    try:
        answer = json.loads(reply.body)
    except ValueError:
        answer = None
    if reply.is_success and isinstance(answer, dict):
        return answer
    said = answer.get("detail") if isinstance(answer, dict) else None
    if reply.status in (401, 403):
        raise ConfigError(["ADMIN_TOKEN: the service has another one."])
    kinds = {404: NotFound, 409: Conflict, 422: BadInput, 503: DatabaseUnavailable}
    kind = kinds.get(reply.status)
    if kind is None or not isinstance(said, str):
        raise BadInput(f"--url: no operator's API answers there (HTTP {reply.status}).")
    raise kind(said)
