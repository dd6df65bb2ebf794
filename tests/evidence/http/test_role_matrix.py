"""Who may do what: every route of the application, by every method, with every credential there is.

The routes are generated from the application, and what opens each is written down here a second time: a route that
nobody has thought about fails this test. Calls that are refused, all of them together, change no row.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from pydantic import SecretStr

from app.config import Settings
from app.main import create_app
from app.web.admin.cookies import SESSION
from app.web.admin.sessions import open_session
from app.web.gates import routes_of
from tests.evidence.http.tokens import ADMIN_TOKEN, API_TOKEN, CRON_SECRET, CRON_SECRET_PREVIOUS, SETTINGS, bearer

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
ANYONE = frozenset({"nobody", "wrong", "tick", "past tick", "producer", "operator", "session", "form of a session"})
TICK, PRODUCER, OPERATOR = frozenset({"tick", "past tick"}), frozenset({"producer"}), frozenset({"operator"})
PAGES = frozenset({"session", "form of a session"})
FORMS = frozenset({"form of a session"})

# What opens each address. None stands for a page that greets everyone: the login, and what it needs.
OPENED_BY: dict[str, frozenset[str]] = {
    "/livez": ANYONE,
    "/readyz": ANYONE,
    "/openapi.json": ANYONE,
    "/docs": ANYONE,
    "/api/cron/tick": TICK,
    "/api/cron/status": TICK | PRODUCER | OPERATOR,
    "/api/jobs": PRODUCER,
    "/api/bookings": PRODUCER,
    "/api/bookings/{booking_id:path}": PRODUCER,
    "/metrics": OPERATOR,
}
GREETS = {"/admin/login", "/admin/language", "/admin/assets/{name}"}
ROWS = """
    SELECT (SELECT count(*) FROM jobs), (SELECT count(*) FROM bookings), (SELECT count(*) FROM reminders),
        (SELECT count(*) FROM ticks), (SELECT count(*) FROM alerts), (SELECT count(*) FROM admin_sessions),
        (SELECT string_agg(jobs::text, ' ' ORDER BY id) FROM jobs),
        (SELECT string_agg(bookings::text, ' ' ORDER BY id) FROM bookings),
        (SELECT string_agg(channels::text, ' ' ORDER BY name) FROM channels)
"""
SOME_ROWS = """
    INSERT INTO jobs (id, kind, status, finished_at) VALUES (1, 'toy', 'dead', now());
    INSERT INTO bookings (id, title, starts_at) VALUES ('1', 'Haircut', now() + interval '2 days');
    INSERT INTO channels (name, suspended_until, reason) VALUES ('1', now() + interval '1 hour', 'refused')
"""


@dataclass(frozen=True)
class Place:
    """One address as the application knows it."""

    template: str
    methods: frozenset[str]

    @property
    def path(self) -> str:
        return re.sub(r"\{\w+(:path)?\}", "1", self.template)

    @property
    def is_page(self) -> bool:
        return self.template == "/admin" or self.template.startswith("/admin/")


def places(app: FastAPI) -> list[Place]:
    found: dict[str, set[str]] = {}
    for route, methods in routes_of(app.routes):
        found.setdefault(route.path, set()).update(methods)
    return [Place(template, frozenset(methods)) for template, methods in sorted(found.items())]


def opened_by(place: Place, method: str) -> frozenset[str]:
    """Return who may call *place*, as this file knows it."""
    if place.template in GREETS:
        return ANYONE
    if place.is_page:
        return FORMS if method == "POST" else PAGES
    if place.template.startswith("/api/admin/"):
        return OPERATOR
    return OPENED_BY[place.template]


@dataclass(frozen=True)
class Holder:
    """Somebody with a credential: the headers that they send, and the field of a form."""

    name: str
    headers: dict[str, str]
    form_token: str = ""


@pytest.fixture
async def app(settings: Callable[..., Settings], dsn: str, conn: Any) -> AsyncIterator[FastAPI]:
    """The application with a token for each role, on some rows."""
    await conn.execute(SOME_ROWS)
    made = create_app(settings(**SETTINGS, openapi=True, tick_jobs=1))
    yield made
    await made.state.services.database.close()


@pytest.fixture
async def holders(app: FastAPI, conn: Any) -> list[Holder]:
    session = await open_session(conn, SecretStr(ADMIN_TOKEN))
    cookie = {"Cookie": f"{SESSION}={session.key}", "Sec-Fetch-Site": "same-origin"}
    return [
        Holder("nobody", {}),
        Holder("wrong", bearer("w" * 45)),
        Holder("tick", bearer(CRON_SECRET)),
        Holder("past tick", bearer(CRON_SECRET_PREVIOUS)),
        Holder("producer", bearer(API_TOKEN)),
        Holder("operator", bearer(ADMIN_TOKEN)),
        Holder("session", cookie),
        Holder("form of a session", cookie, session.form_token),
    ]


def calls(app: FastAPI) -> Iterator[tuple[Place, str]]:
    """Yield every address by every method; the way out comes last, for it ends the session."""
    for place in sorted(places(app), key=lambda place: place.template == "/admin/logout"):
        for method in METHODS:
            yield place, method


async def send(client: httpx.AsyncClient, place: Place, method: str, holder: Holder) -> httpx.Response:
    if place.is_page and method == "POST":
        same_origin = {"Sec-Fetch-Site": "same-origin"}
        return await client.post(
            place.path, headers=same_origin | holder.headers, data={"form_token": holder.form_token}
        )
    return await client.request(method, place.path, headers=holder.headers)


def is_let_in(place: Place, method: str, answer: httpx.Response) -> bool:
    """Say whether *answer* is one of who may enter: a page turns others away to the login, or refuses their form."""
    if not place.is_page:
        return answer.status_code != 401
    if place.template in GREETS:
        return True
    if method == "POST" and answer.status_code == 403:
        return False
    return not (answer.status_code == 303 and answer.headers["location"].startswith("/admin/login"))


def is_as_expected(place: Place, method: str, holder: Holder, answer: httpx.Response) -> bool:
    """Say whether *answer* is what this file expects; who may not enter learns nothing of the methods."""
    may_enter = holder.name in opened_by(place, method)
    if answer.status_code >= 500:
        return False
    if method not in place.methods and (may_enter or place.is_page):
        return answer.status_code == 405
    if place.template == "/admin/logout" and may_enter:
        return answer.status_code == 303
    return is_let_in(place, method, answer) == may_enter


def test_every_address_has_been_thought_about(app: FastAPI) -> None:
    api = {
        place.template for place in places(app) if not place.is_page and not place.template.startswith("/api/admin/")
    }

    assert api == set(OPENED_BY)
    assert {place.template for place in places(app)} >= GREETS


async def test_each_credential_opens_its_own_addresses_and_no_other(app: FastAPI, holders: list[Holder]) -> None:
    wrong, known = [], 0
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test", timeout=30) as client:
        for place, method in calls(app):
            answers = await asyncio.gather(*(send(client, place, method, holder) for holder in holders))
            known += len(answers)
            wrong += [
                (place.template, method, holder.name, answer.status_code)
                for holder, answer in zip(holders, answers, strict=True)
                if not is_as_expected(place, method, holder, answer)
            ]

    assert wrong == []
    assert known == len(places(app)) * len(METHODS) * len(ANYONE)


async def test_all_that_is_refused_changes_no_row(app: FastAPI, holders: list[Holder], conn: Any) -> None:
    before = await conn.fetchrow(ROWS)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test", timeout=30) as client:
        for place, method in calls(app):
            refused = [holder for holder in holders if holder.name not in opened_by(place, method)]
            chosen = refused if method in place.methods else holders
            await asyncio.gather(*(send(client, place, method, holder) for holder in chosen))

    assert await conn.fetchrow(ROWS) == before


async def test_no_page_and_no_form_is_opened_by_a_foreign_site(app: FastAPI, holders: list[Holder], conn: Any) -> None:
    holder = holders[-1]
    before = await conn.fetchrow(ROWS)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        forms = [place for place in places(app) if place.is_page and "POST" in place.methods]
        answers = [
            await client.post(
                place.path,
                headers=holder.headers | {"Sec-Fetch-Site": site},
                data={"form_token": holder.form_token},
            )
            for place in forms
            for site in ("cross-site", "same-site", "none", "")
        ]

    assert {answer.status_code for answer in answers} == {403}
    assert await conn.fetchrow(ROWS) == before
