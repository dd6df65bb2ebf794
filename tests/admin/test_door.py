"""Who may come in: a token, a session in the database, a form of this session, and nothing else."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import Route

from app.config import Settings
from app.main import create_app
from app.web.admin import ROUTES, login
from tests.admin.conftest import ADMIN_TOKEN, ORIGIN, SAME, Visitor
from tests.web.conftest import bearer

COOKIE = "__Host-dormouse"
OPEN = ("/admin/login", "/admin/language", "/admin/assets/{name}")
PLACES = {"{job_id}": "1", "{verb}": "requeue", "{status}": "sent", "{booking_id:path}": "b-1", "{rest:path}": "x"}
BEHIND = [(route.path, method) for route in ROUTES if route.path not in OPEN for method in sorted(route.methods or ())]


def fill(path: str) -> str:
    for name, value in PLACES.items():
        path = path.replace(name, value)
    return path.replace("{tick_id}", "00000000-0000-0000-0000-000000000000")


async def test_without_an_admin_token_there_are_no_pages(settings: Callable[..., Settings]) -> None:
    app = create_app(settings(database_url="postgresql://nobody@127.0.0.1:1/none"))

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as client:
        answers = [await client.request(method, fill(path), headers=SAME) for path, method in BEHIND]
        answers.append(await client.get("/admin/login"))

    assert {answer.status_code for answer in answers} == {404}


async def test_a_stranger_is_led_to_the_door_by_every_page(stranger: Visitor) -> None:
    held: tuple[dict[str, str], ...] = (
        {},
        bearer(ADMIN_TOKEN),
        {"Cookie": f"{COOKIE}={'x' * 43}"},
        {"Cookie": f"{COOKIE}=short"},
    )

    for (path, method), headers in itertools.product(BEHIND, held):
        answer = await stranger.client.request(method, fill(path), headers=SAME | headers)

        assert (answer.status_code, answer.headers["location"][:12]) == (303, "/admin/login"), (path, method)


async def test_the_right_token_opens_a_session_under_a_new_key(stranger: Visitor, conn: Any) -> None:
    stranger.client.cookies.set(COOKIE, "k" * 43, domain="dormouse.example", path="/")

    answer = await stranger.log_in()

    cookie = answer.headers["set-cookie"]
    assert answer.status_code == 303
    assert cookie.startswith(f"{COOKIE}=")
    assert "k" * 43 not in cookie
    assert {part.strip() for part in cookie.split(";")[1:]} == {
        "HttpOnly", "Max-Age=43200", "Path=/", "SameSite=Strict", "Secure",
    }  # fmt: skip
    assert await conn.fetchval("SELECT count(*) FROM admin_sessions") == 1


async def test_the_database_does_not_hold_what_the_browser_holds(stranger: Visitor, conn: Any) -> None:
    answer = await stranger.log_in()

    key = answer.headers["set-cookie"].partition("=")[2].partition(";")[0]
    assert len(key) == 43
    assert key not in str(
        await conn.fetch("SELECT encode(digest, 'escape'), encode(digest, 'base64') FROM admin_sessions")
    )


@pytest.mark.usefixtures("no_wait")
async def test_any_other_token_is_turned_down(stranger: Visitor, conn: Any) -> None:
    near = [ADMIN_TOKEN[:-1], ADMIN_TOKEN + "x", ADMIN_TOKEN.upper()]

    for token in ("", "wrong", *near, "é" * 40, "api-" + "t" * 40):
        answer = await stranger.log_in(token)

        assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)
        assert token == "" or token not in answer.text
    assert await conn.fetchval("SELECT count(*) FROM admin_sessions") == 0


async def test_white_space_around_the_token_is_forgiven(stranger: Visitor) -> None:
    assert (await stranger.log_in(f"  {ADMIN_TOKEN}\n")).status_code == 303


async def test_a_wrong_token_costs_a_second(stranger: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def note(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("app.web.admin.login.asyncio.sleep", note)
    await stranger.log_in("wrong")

    assert waits == [1.0]


async def test_a_crowd_of_guesses_is_told_to_come_later(stranger: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "LINE_SECONDS", 0.05)
    monkeypatch.setattr(login, "WRONG_SECONDS", 0.5)

    answers = await asyncio.gather(*(stranger.log_in("wrong") for _ in range(login.PLACES + 3)))

    assert sorted(answer.status_code for answer in answers) == [401] * login.PLACES + [429] * 3
    assert {answer.headers.get("retry-after") for answer in answers if answer.status_code == 429} == {"60"}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE admin_sessions SET last_seen_at = now() - interval '30 minutes 1 second'",
        "UPDATE admin_sessions SET expires_at = expires_at - interval '12 hours'",
        "DELETE FROM admin_sessions",
    ],
)
async def test_a_session_ends_when_it_lies_idle_and_when_it_is_old(visitor: Visitor, conn: Any, statement: str) -> None:
    assert (await visitor.get("/admin")).status_code == 200

    await conn.execute(statement)

    assert (await visitor.get("/admin")).status_code == 303


async def test_a_visit_keeps_a_session_awake_and_the_script_does_not(visitor: Visitor, conn: Any) -> None:
    age = "UPDATE admin_sessions SET last_seen_at = now() - interval '20 minutes'"
    read = "SELECT extract(epoch FROM now() - last_seen_at)::float8 FROM admin_sessions"

    await conn.execute(age)
    await visitor.get("/admin/pulse")
    after_pulse = await conn.fetchval(read)
    await visitor.get("/admin/jobs")

    assert after_pulse > 1000
    assert await conn.fetchval(read) < 60


async def test_logging_out_ends_the_session_for_good(visitor: Visitor, conn: Any) -> None:
    key = visitor.client.cookies[COOKIE]

    answer = await visitor.send("/admin/logout")
    visitor.client.cookies.set(COOKIE, key, domain="dormouse.example", path="/")

    assert answer.headers["set-cookie"].startswith(f'{COOKIE}="";')
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert await conn.fetchval("SELECT count(*) FROM admin_sessions") == 0
    assert (await visitor.get("/admin")).status_code == 303


async def test_a_new_admin_token_ends_every_session_of_the_old_one(
    visitor: Visitor, settings: Callable[..., Settings]
) -> None:
    app = create_app(settings(admin_token="fresh-" + "b" * 40))

    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url=ORIGIN, cookies=visitor.client.cookies
    ) as client:
        answer = await client.get("/admin")
    await app.state.services.database.close()

    assert answer.status_code == 303


async def test_a_second_login_closes_the_first_session_of_that_browser(visitor: Visitor, conn: Any) -> None:
    await visitor.log_in()

    assert await conn.fetchval("SELECT count(*) FROM admin_sessions") == 1


LEADS = {
    "/admin/jobs/12": "/admin/jobs/12",
    "/admin/bookings/a%2Fb": "/admin/bookings/a%2Fb",
    "": "/admin",
    "/admin/logout": "/admin",
    "//evil.example": "/admin",
    "https://evil.example/admin": "/admin",
    "/admin/../api": "/admin",
    "/admin/%2e%2E/api": "/admin",
    "/admin/jobs/../../api": "/admin",
    "/admin//evil.example": "/admin",
    "/admin\\evil": "/admin",
    "/administrator": "/admin",
    "/admin/jobs?x=1": "/admin",
    "javascript:alert(1)": "/admin",
}


async def test_the_login_leads_on_to_our_own_pages_only(stranger: Visitor) -> None:
    for asked, led_to in LEADS.items():
        answer = await stranger.post("/admin/login", token=ADMIN_TOKEN, next=asked)
        second = await stranger.get(answer.headers["location"])

        assert second.headers["location"] == led_to


async def test_a_browser_that_keeps_no_cookie_is_told_so(stranger: Visitor) -> None:
    answer = await stranger.get("/admin/login?next=/admin&kept=no")

    assert "open this page by https" in answer.text


async def test_a_form_without_the_sessions_own_token_changes_nothing(visitor: Visitor) -> None:
    forms = [path for path, method in BEHIND if method == "POST"]
    tokens: list[dict[str, str]] = [{}, {"form_token": ""}, {"form_token": "0" * 64}, {"form_token": "é"}]

    answers = [await visitor.post(fill(path), **fields) for path in forms for fields in tokens]

    assert {answer.status_code for answer in answers} == {403}
    assert len(answers) == 4 * 7


async def test_a_form_of_another_site_changes_nothing(visitor: Visitor, conn: Any) -> None:
    token = await visitor.form_token()

    for headers in ({}, *({"Sec-Fetch-Site": site} for site in ("cross-site", "same-site", "none"))):
        answer = await visitor.client.post("/admin/logout", data={"form_token": token}, headers=headers)

        assert answer.status_code == 403
    assert await conn.fetchval("SELECT count(*) FROM admin_sessions") == 1


def test_what_changes_something_takes_no_get() -> None:
    changing = {route.path for route in ROUTES if "POST" in (route.methods or ())}

    assert {path for path in changing if "GET" in methods_of(path)} == {"/admin/login", "/admin/jobs"}


def methods_of(path: str) -> set[str]:
    return {method for route in ROUTES if route.path == path for method in route.methods or ()}


async def test_every_page_has_the_headers_that_keep_it_to_itself(visitor: Visitor) -> None:
    answers = [await visitor.get(path) for path in ("/admin", "/admin/login", "/admin/nothing", "/admin/jobs/1")]

    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert {"frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} <= set(policy.split("; "))
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["strict-transport-security"] == "max-age=31536000"


async def test_hsts_is_sent_by_https_only(application: FastAPI) -> None:
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer = await client.get("/admin/login")

    assert "strict-transport-security" not in answer.headers


async def test_nothing_is_inline_and_nothing_comes_from_elsewhere(visitor: Visitor) -> None:
    page = (await visitor.get("/admin")).text

    assert not [piece for piece in ("style=", "<style", " onclick", "http://", "https://") if piece in page]
    assert page.count("<script") == 1
    assert '<script src="/admin/assets/dormouse.' in page


async def test_an_asset_is_kept_for_a_year_under_its_own_digest(stranger: Visitor) -> None:
    page = (await stranger.get("/admin/login")).text
    path = page.partition('rel="stylesheet" href="')[2].partition('"')[0]

    answer, older = await stranger.get(path), await stranger.get("/admin/assets/dormouse.0000000000000000.css")

    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    assert older.status_code == 404


async def test_a_link_from_another_site_gets_a_page_that_calls_itself_once_more(stranger: Visitor) -> None:
    answer = await stranger.get("/admin/jobs/12", **{"Sec-Fetch-Site": "cross-site"})

    assert answer.status_code == 200
    assert '<meta http-equiv="refresh" content="0">' in answer.text


def test_every_route_of_the_pages_is_behind_the_door_or_named_here() -> None:
    assert all(isinstance(route, Route) for route in ROUTES)
    assert {route.path for route in ROUTES} - {path for path, _ in BEHIND} == set(OPEN)
