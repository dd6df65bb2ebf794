"""The HTTP table is the application's routes, each behind the token that it names; its examples are taken."""

import json
import re
import shlex
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import httpx
from fastapi import FastAPI

from app.config import Settings
from app.main import create_app
from app.summary import Summary
from app.web.gates import gate_of, make_gates, routes_of
from tests.readme.manual import blocks, plain, shell_lines, table

API_TOKEN = "api-" + "0123456789abcdef" * 3
ADMIN_TOKEN = "admin-" + "0123456789abcdef" * 3
NOWHERE = "postgresql://nobody@127.0.0.1:1/none"


def addresses_of(app: FastAPI) -> set[tuple[str, str]]:
    """Name every method and address of the API, as the manual writes them: pages are for eyes, not for calls."""
    return {
        (method, re.sub(r"\{(?:\w+_)?id(?::\w+)?\}", "{id}", route.path))
        for route, methods in routes_of(app.routes)
        for method in methods - {"HEAD"}
        if not f"{route.path}/".startswith("/admin/")
    }


def test_every_route_has_its_row_and_no_row_is_of_something_else(settings: Callable[..., Settings]) -> None:
    app = create_app(settings(database_url=NOWHERE, api_token=API_TOKEN, openapi=True))
    named = {tuple(plain(call).split(" ")) for call, *_ in table("call")}

    assert named == addresses_of(app)


def test_each_row_names_the_token_that_opens_it(settings: Callable[..., Settings]) -> None:
    chosen = settings(api_token=API_TOKEN, admin_token=ADMIN_TOKEN)
    tokens = {name: [getattr(chosen, name.lower())] for name in ("CRON_SECRET", "API_TOKEN", "ADMIN_TOKEN")}
    tokens["any"] = [token for (token,) in tokens.values()]
    gates = make_gates(chosen)

    for call, token, *_ in table("call"):
        path = plain(call).split(" ")[1].replace("{id}", "1")
        gate = gate_of(gates, path)
        if plain(token) == "none":
            assert gate is None, path
        else:
            assert gate is not None, path
            for opener in tokens[plain(token)]:
                gate.check([(b"authorization", f"Bearer {opener.get_secret_value()}".encode())])


async def test_the_examples_that_it_gives_to_curl_are_taken(settings: Callable[..., Settings], dsn: str) -> None:
    calls = [read_curl(line) for line in shell_lines() if line.startswith("curl ") and "$API_TOKEN" in line]
    app = create_app(settings(database_url=dsn, api_token=API_TOKEN))

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:
        answers = [await client.request(method, url, json=body, headers=HEADERS) for method, url, body in calls]

    await app.state.services.database.close()
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json() == {"id": 1, "is_new": True}
    assert answers[1].json()["starts_at"] == "2030-01-31T02:00:00+00:00"


HEADERS = {"Authorization": f"Bearer {API_TOKEN}"}


def read_curl(line: str) -> tuple[str, str, Any]:
    """Return method, address and body of one curl command."""
    words = shlex.split(line)
    options = dict(pairwise(words))
    return options.get("-X", "POST"), words[-1], json.loads(options["-d"])


def test_the_summary_that_it_shows_has_every_field_and_no_other() -> None:
    shown = json.loads(next(block for block in blocks("json") if "tick_id" in block))

    assert shape(shown) == shape(Summary("demo").as_dict())


def shape(value: Any) -> Any:
    """Return the names of an object and of the objects in it."""
    return {name: shape(part) for name, part in value.items()} if isinstance(value, dict) else None
