"""Requests that were right once and are mangled now: no 5xx and no broken connection, on any route.

    a right request -> odd values spliced in, bytes flipped, cut, doubled -> the real server -> 2xx, 3xx or 4xx

The routes are the application's own. Names of fields and of query values are read from its description and its source.
"""

import ast
import asyncio
import json
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pydantic import SecretStr

import app.web.admin
from app.web.admin.cookies import SESSION
from app.web.admin.sessions import open_session
from app.web.gates import routes_of
from tests.evidence.http.conftest import Serve
from tests.evidence.http.tokens import ADMIN_TOKEN, application, token_for
from tests.evidence.http.wire import Line
from tests.web.corpus import BASES, values
from tests.web.serving import request

SHORT, NIGHTLY, LINES = 2_000, 100_000, 8
SEED = 20261130
FORM = "Content-Type: application/x-www-form-urlencoded"
JSON = "Content-Type: application/json"
EXPECTED = {200, 201, 303, 400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 431}


@dataclass(frozen=True)
class Route:
    """One method of one address."""

    method: str
    path: str

    @property
    def is_page(self) -> bool:
        return self.path.startswith("/admin")


def routes() -> list[Route]:
    """Return all of the application's, the login and the way out excepted: they would end the run's own session."""
    found = {Route(method, route.path) for route, methods in routes_of(application().routes) for method in methods}
    return sorted(
        (route for route in found if route.path not in {"/admin/logout", "/admin/login"}),
        key=lambda route: (route.path, route.method),
    )


def names_of_pages() -> list[str]:
    """Return every name that a page reads from its address or its form."""
    folder = Path(app.web.admin.__file__).parent
    calls = [
        node
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"query", "get"}
    ]
    texts = {call.args[0].value for call in calls if call.args and isinstance(call.args[0], ast.Constant)}
    return sorted(text for text in texts if isinstance(text, str) and text.isidentifier())


QUERY_NAMES = ["limit", "after", "before_id", "status", "kind", "queue", "error", "since", "until", "max_age_seconds"]


@dataclass(frozen=True)
class Maker:
    """Makes one mangled request after another from a seed."""

    chance: random.Random
    cookie: str
    form_token: str
    routes: list[Route]
    odd: list[bytes]
    page_names: list[str]

    def make(self) -> tuple[bytes, bool]:
        """Return a request, and whether it is a HEAD."""
        route = self.chance.choice(self.routes)
        return (self._page(route) if route.is_page else self._call(route)), route.method == "HEAD"

    def _value(self) -> bytes:
        value = self.chance.choice(self.odd)[:20_000]
        for _ in range(self.chance.choice((0, 0, 0, 1, 2))):
            value = self._mangle(value)
        return value

    def _mangle(self, value: bytes) -> bytes:
        place = self.chance.randrange(len(value) + 1)
        before, after = value[:place], value[place:]
        return self.chance.choice(
            (
                before,
                before + bytes([self.chance.randrange(256)]) + after[1:],
                before + self.chance.choice(self.odd)[:200] + after,
                after + before,
            )
        )

    def _path(self, route: Route, names: list[str]) -> str:
        path = route.path
        while "{" in path:
            before, _, rest = path.partition("{")
            path = before + self._quoted() + rest.partition("}")[2]
        if self.chance.random() < 0.5:
            path += "?" + "&".join(
                f"{self.chance.choice(names)}={self._quoted()}" for _ in range(self.chance.randrange(1, 4))
            )
        return path

    def _quoted(self) -> str:
        text = self.chance.choice((b"1", b"b-1", b"2026-11-30T00:00:00Z", self._value(), self._value()))
        return quote(text[:2_000], safe="") or "x"

    def _call(self, route: Route) -> bytes:
        headers = [f"Authorization: Bearer {token_for(route.path)}"] if token_for(route.path) else []
        body = b""
        if route.method in {"POST", "PUT"}:
            headers.append(self.chance.choice((JSON, JSON, JSON, FORM)))
            body = self._json()
        return request(route.method, self._path(route, QUERY_NAMES), *headers, body=body)

    def _json(self) -> bytes:
        base = dict(self.chance.choice(list(BASES.values())))
        odd = {
            self.chance.choice([*base, "filter", "all", "x"]): self._value() for _ in range(self.chance.randrange(3))
        }
        members = [(name, json.dumps(value).encode()) for name, value in base.items() if name not in odd]
        body = b"{%s}" % b",".join(b'"%s":%s' % (name.encode(), value) for name, value in [*members, *odd.items()])
        if self.chance.random() < 0.2:
            body = b'{"jobs":[%s,%s]}' % (body, self._value())
        return self._mangle(body) if self.chance.random() < 0.3 else body

    def _page(self, route: Route) -> bytes:
        headers = [f"Cookie: {SESSION}={self.cookie}", "Sec-Fetch-Site: same-origin"]
        if route.method != "POST":
            return request(route.method, self._path(route, self.page_names), *headers)
        fields = {name: self._quoted() for name in self.chance.sample(self.page_names, self.chance.randrange(6))}
        fields |= {"form_token": self.form_token} if self.chance.random() < 0.9 else {}
        body = "&".join(f"{name}={value}" for name, value in fields.items()).encode()
        body = self._mangle(body) if self.chance.random() < 0.3 else body
        return request("POST", self._path(route, self.page_names), *headers, FORM, body=body)


async def send_many(port: int, maker: Maker, many: int) -> Counter[int]:
    """Send *many* requests over some connections and return how they were answered."""
    statuses: Counter[int] = Counter()
    queue = (maker.make() for _ in range(many))

    async def pump() -> None:
        line = Line(port)
        for raw, is_head in queue:
            reply = await line.ask(raw, is_head=is_head)
            is_late = reply.status == 503 and b"/api/cron/status" in raw  # a monitor asked for exactly that
            assert reply.status in EXPECTED or is_late, (raw[:3000], reply)
            statuses[reply.status] += 1
        await line.close()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(LINES):
            tasks.create_task(pump())
    return statuses


@pytest.mark.parametrize(
    "many", [pytest.param(SHORT, id="short"), pytest.param(NIGHTLY, id="nightly", marks=pytest.mark.nightly)]
)
async def test_no_mangled_request_gets_a_5xx_or_a_broken_connection(serve: Serve, conn: Any, many: int) -> None:
    serving = serve()
    session = await open_session(conn, SecretStr(ADMIN_TOKEN))
    chance = random.Random(SEED)  # noqa: S311 - a replay needs the same numbers
    maker = Maker(chance, session.key, session.form_token, routes(), values(), names_of_pages())

    statuses = await send_many(serving.port, maker, many)

    print(f"{many} mangled requests, seed {SEED}: {dict(sorted(statuses.items()))}")  # noqa: T201 - the nightly figure
    assert statuses.total() == many
    assert statuses[200] > many / 50
    assert {400, 401, 403, 404, 422} & set(statuses) >= {400, 404, 422}
    assert "request.failed" not in serving.log_text()
    assert "Traceback" not in serving.log_text()
