"""No secret leaves: a word of its own for each is set loose, everything is made to fail, and then all is searched.

environment, headers, DSN, payload -> server and command line, failing -> logs, answers, pages, tables: grep
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.config import secret_parts
from app.web.admin.cookies import SESSION
from app.web.gates import routes_of
from tests.channels.http_server import HttpServer, answer, http_server
from tests.channels.smtp_server import SmtpServer, smtp_server
from tests.evidence.http import leaky
from tests.evidence.http.canaries import Canaries, read_tables, run_command, with_password
from tests.evidence.http.conftest import Serve
from tests.evidence.http.tokens import application, bearer
from tests.web.serving import Serving

AT_ONCE = 3
SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}
# Where a payload and an attendee may be seen: by the operator, and in what the booking's own producer asks for.
PAGES_OF_ROWS = ("/admin/jobs", "/admin/bookings", "/admin/reminders", "/api/admin/jobs", "/api/admin/bookings")


@dataclass
class Far:
    """The far sides: a mail server and a web server that both quote what they were sent."""

    mail: SmtpServer
    web: HttpServer


@dataclass
class World:
    """A server whose every part fails, and all that it has said."""

    canaries: Canaries
    settings: dict[str, str]
    serving: Serving
    conn: Any
    said: dict[str, str] = field(default_factory=dict)


@pytest.fixture
async def far() -> AsyncIterator[Far]:
    async with AsyncExitStack() as stack:
        refusals = {"RCPT": "451 come later", "EHLO": "250-loopback\r\n250 AUTH PLAIN LOGIN"}
        mail = await stack.enter_async_context(smtp_server(refusals))
        web = await stack.enter_async_context(http_server(answer(500, {"error": "no"})))
        yield Far(mail, web)


@pytest.fixture
async def world(serve: Serve, far: Far, dsn: str, conn: Any) -> World:
    canaries = Canaries()
    settings = canaries.settings(dsn, far.mail.port, far.web.port)
    words = [*canaries.secrets.values(), *settings.values()]
    settings |= {leaky.SECRETS: "\n".join(words), "HANDLER_MODULES": "tests.evidence.http.leaky", "OPENAPI": "true"}
    far.mail.replies["RCPT"] = f"550 5.1.1 {canaries.secrets['mail password']} {canaries.attendee['address']} unknown"
    far.web.answer = answer(500, {"error": list(canaries.secrets.values())})
    return World(canaries, settings, serve(**settings), conn)


async def enqueue_all(world: World, client: httpx.AsyncClient) -> int:
    """Enqueue a job for each way to fail with each secret, and book one appointment that is due."""
    held, attendee = world.canaries.secrets, world.canaries.attendee
    numbers = range(len(world.settings[leaky.SECRETS].split("\n")))
    jobs = [
        {"kind": kind, "payload": {"number": number, "note": world.canaries.payload}}
        for kind in leaky.HANDLERS
        if kind != "leaky.order"
        for number in numbers
    ]
    jobs.append({"kind": "leaky.order", "payload": {"number": world.canaries.payload}})
    jobs.append({"kind": "unknown.kind", "payload": {"note": world.canaries.payload}})
    booking = {
        "title": attendee["title"],
        "starts_at": "2999-01-01T00:00:00Z",
        "attendee_name": attendee["name"],
        "attendee_email": f"{attendee['address']}@example.com",
        "attendee_line_id": attendee["line id"],
        "location": attendee["location"],
    }
    posted = await client.post("/api/jobs", json={"jobs": jobs}, headers=bearer(held["API_TOKEN"]))
    put = await client.put("/api/bookings/b-1", json=booking, headers=bearer(held["API_TOKEN"]))
    assert (posted.status_code, put.status_code) == (201, 201)
    await world.conn.execute(
        "UPDATE bookings SET starts_at = now() + interval '2 hours', created_at = now() - interval '1 day'"
    )
    world.said["POST /api/jobs"] = posted.text
    return len(jobs)


async def tick_twice(world: World, client: httpx.AsyncClient) -> None:
    headers = bearer(world.canaries.secrets["CRON_SECRET"]) | {"X-Tick-Source": world.canaries.request}
    for number in range(2):
        ticked = await client.post("/api/cron/tick", headers=headers)
        assert ticked.status_code == 200
        world.said[f"tick {number}"] = ticked.text


async def ask_wrongly(world: World, client: httpx.AsyncClient) -> None:
    """Send the request's word in every place of every route, with the right token and with a wrong one."""
    word, held = world.canaries.request, world.canaries.secrets
    tokens = ["x", word, held["CRON_SECRET"], held["API_TOKEN"], held["ADMIN_TOKEN"]]
    for route, methods in routes_of(application().routes):
        path = re.sub(r"\{[^}]*\}", word, route.path)
        for method in sorted(methods - {"HEAD"}):
            for token in tokens:
                headers = bearer(token) | SAME_ORIGIN | {"User-Agent": word, "Cookie": f"{SESSION}={word}"}
                url = f"{path}?{word}={word}&limit={word}&next={word}"
                sends: dict[str, Any] = {"json": {"title": word, "kind": [word]}} if method in {"POST", "PUT"} else {}
                if path.startswith("/admin"):
                    sends = {"data": {"token": word, "form_token": word, "language": word}} if method == "POST" else {}
                    if token != "x" or ("login" in path and method == "POST"):
                        continue
                got = await client.request(method, url, headers=headers, **sends)
                assert got.status_code < 500, (method, path, got.text)
                if got.status_code >= 400:
                    world.said[f"{method} {route.path} {tokens.index(token)}"] = got.text


async def visit_all(world: World, client: httpx.AsyncClient) -> None:
    """Look at every page and every list, as the operator."""
    admin = world.canaries.secrets["ADMIN_TOKEN"]
    opened = await client.post("/admin/login", data={"token": admin}, headers=SAME_ORIGIN)
    key = opened.cookies[SESSION]
    ids = [row["id"] for row in await world.conn.fetch("SELECT id FROM jobs ORDER BY id")]
    ticks = [row["id"] for row in await world.conn.fetch("SELECT id FROM ticks")]
    places = ["/admin", "/admin/jobs", "/admin/reminders", "/admin/reminders/failed", "/admin/ticks", "/admin/schedule"]
    places += ["/admin/channels", "/admin/bookings/b-1", *(f"/admin/ticks/{each}" for each in ticks)]
    places += [f"/admin/jobs/{each}" for each in ids[::7]]
    calls = ["/api/admin/jobs", "/api/admin/channels", "/api/admin/bookings/b-1/why", "/metrics", "/api/cron/status"]
    calls += [f"/api/admin/jobs/{each}{more}" for each in ids[::9] for more in ("", "/why")]
    for path in places:
        got = await client.get(path, headers={"Cookie": f"{SESSION}={key}"})
        assert got.status_code == 200, path
        world.said[path] = got.text
    for path in [*calls, "/livez", "/readyz", "/openapi.json", "/docs"]:
        got = await client.get(path, headers=bearer(admin))
        assert got.status_code == 200, path
        world.said[path] = got.text
    world.said["the log"] = world.serving.log_text()
    assert key not in str(world.said)


def wrong_settings(world: World) -> dict[str, dict[str, str]]:
    """Return settings that do not work, each with a secret in it."""
    held = world.canaries.secrets
    word = held["database password"]
    return {
        "closed port": {
            "DATABASE_URL": with_password("postgresql://postgres@127.0.0.1:1/none", word),
            "CONNECT_TIMEOUT_SECONDS": "0.5",
        },
        "no such database": {"DATABASE_URL": re.sub(r"/[te]_\w+", "/none", world.settings["DATABASE_URL"])},
        "no URL": {"DATABASE_URL": f"mysql://postgres:{word}@127.0.0.1/none"},
        "torn URL": {"DATABASE_URL": f"postgresql://postgres:{word}#x@127.0.0.1/none"},
        "no mail": {"EMAIL_URL": f"smtp://u:{held['mail password']}@/?x=y"},
        "no handlers": {"HANDLER_MODULES": "tests.evidence.http.absent"},
        "same tokens": {"API_TOKEN": held["CRON_SECRET"]},
    }


async def command_all(world: World, folder: Path) -> None:
    """Run the command line in the same environment, and in some that are wrong."""
    last = await world.conn.fetchval("SELECT max(id) FROM jobs")
    lines = ("tick --json", "doctor", "migrate", "jobs list", f"jobs show {last}", "enqueue x --json", "bookings list")
    serve = f"serve --host 127.0.0.1 --port {world.serving.port}"  # taken: it must not stay
    runs = [(line, "the right settings", world.settings) for line in lines]
    for name, wrong in wrong_settings(world).items():
        runs += [(line, name, world.settings | wrong) for line in ("tick", serve)]
    turn = asyncio.Semaphore(AT_ONCE)

    async def run(line: str, name: str, settings: dict[str, str]) -> None:
        async with turn:
            world.said[f"dormouse {line} with {name}"] = await run_command(folder, settings, *line.split())

    await asyncio.gather(*(run(*each) for each in runs))


def judge(world: World) -> dict[str, list[str]]:
    """Return where a word was found that does not belong there."""
    found = {}
    for place, text in world.said.items():
        is_of_rows = place.startswith((*PAGES_OF_ROWS, "dormouse jobs", "dormouse bookings"))
        may_hold = ("payload", *world.canaries.attendee) if is_of_rows else ()
        if place.startswith("GET /admin/"):
            may_hold = ("request",)  # a page leads back to its own address when the language is changed
        if names := world.canaries.found_in(text, but=may_hold):
            found[place] = names
    return found


async def test_no_secret_leaves_by_log_answer_page_table_or_command(world: World, far: Far, tmp_path: Path) -> None:
    async with httpx.AsyncClient(base_url=world.serving.url, timeout=60) as client:
        many = await enqueue_all(world, client)
        await tick_twice(world, client)
        await ask_wrongly(world, client)
        await visit_all(world, client)
    await command_all(world, tmp_path)
    tables = await read_tables(world.conn)

    assert judge(world) == {}
    attendee = tuple(world.canaries.attendee)
    may_hold = {"jobs": ("payload",), "bookings": attendee, "reminders": attendee}
    assert {
        name: names
        for name, text in tables.items()
        if (names := world.canaries.found_in(text, but=may_hold.get(name, ())))
    } == {}
    assert tables["jobs"].count(world.canaries.payload) >= many / 2
    assert world.said["the log"].count("leaky.") >= many / 2
    assert far.mail.messages == []
    assert far.mail.lines
    assert far.web.requests
    assert len(world.said) > 100


async def test_the_search_would_find_what_it_looks_for(world: World) -> None:
    canaries = world.canaries

    await world.conn.execute(
        "INSERT INTO alerts (sink, topic, label, things) VALUES ('s', 't', $1, 1)", canaries.payload
    )
    world.said["a page"] = json.dumps(canaries.secrets)

    assert canaries.found_in((await read_tables(world.conn))["alerts"]) == ["payload"]
    assert judge(world)["a page"] == list(canaries.secrets)


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("postgresql://postgres:postgres@db.example.com/long_name_of_a_database", set()),
        ("postgresql://u:p%40ssword12@db.example.com/d?sslmode=require", {"p%40ssword12", "p@ssword12"}),
        ("postgresql://u@db.example.com/d?password=longpassword", {"longpassword"}),
        ("resend://re_abcdefghijkl@", {"re_abcdefghijkl"}),
        ("smtp://me@example.com:longpassword@mail.example.com:25?tls=none", {"longpassword"}),
        ("https://example.com/services/T0000/abcdefabcdef", {"abcdefabcdef"}),
        ("tgram://123456789:abcdefghijklmnop/1234", {"abcdefghijklmnop"}),
    ],
)
def test_what_is_secret_within_an_address_is_masked_by_itself_too(url: str, parts: set[str]) -> None:
    assert secret_parts(url) == parts
