"""Every route behind its gate: the matrix is made from the routes, so that a new one cannot be forgotten."""

from collections.abc import Callable

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import Route

from app.config import Settings
from app.main import create_app
from app.web.gates import map_places
from tests.web.conftest import API, API_TOKEN, CRON, CRON_SECRET, bearer

DSN = "postgresql://nobody@127.0.0.1:1/none"
ADMIN_TOKEN = "admin-" + "a" * 40
TOKENS = {"none": {}, "wrong": bearer("w" * 46), "tick": CRON, "api": API, "operator": bearer(ADMIN_TOKEN)}
OPENED_BY = {
    "/livez": set(TOKENS),
    "/readyz": set(TOKENS),
    "/api/cron/tick": {"tick"},
    "/api/cron/status": {"tick", "api", "operator"},
    "/metrics": {"operator"},
}
PRODUCERS, OPERATORS = {"api"}, {"operator"}


def make(settings: Callable[..., Settings], **overrides: object) -> FastAPI:
    values = {"database_url": DSN, "cron_secret": CRON_SECRET, "api_token": API_TOKEN, "admin_token": ADMIN_TOKEN}
    return create_app(settings(**values | {"connect_timeout_seconds": 0.01} | overrides))


def open_client(app: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


@pytest.mark.parametrize("holder", TOKENS)
async def test_each_token_opens_its_own_routes_and_no_other(settings: Callable[..., Settings], holder: str) -> None:
    app = make(settings)
    calls = [
        (route.path, method)
        for route in app.routes
        if isinstance(route, Route) and not is_page(route.path)
        for method in route.methods or ()
    ]

    async with open_client(app) as client:
        for path, method in calls:
            answer = await client.request(method, path.replace("{booking_id:path}", "b-1"), headers=TOKENS[holder])

            is_open = holder in OPENED_BY.get(path, OPERATORS if path.startswith("/api/admin/") else PRODUCERS)
            assert (answer.status_code != 401) == is_open, (path, method, answer.status_code)


def is_page(path: str) -> bool:
    """Say whether *path* is a page: it takes no bearer, a session opens it."""
    return path == "/admin" or path.startswith("/admin/")


async def test_without_an_admin_token_the_operators_addresses_do_not_exist(settings: Callable[..., Settings]) -> None:
    async with open_client(make(settings, admin_token=None)) as client:
        answers = [
            await client.get("/metrics", headers=CRON),
            await client.get("/api/admin/jobs", headers=API),
            await client.post("/api/admin/jobs/1/requeue", headers=bearer(ADMIN_TOKEN)),
            await client.get("/api/cron/status", headers=bearer(ADMIN_TOKEN)),
        ]

    assert [answer.status_code for answer in answers] == [404, 404, 404, 401]


async def test_without_an_api_token_its_routes_do_not_exist(settings: Callable[..., Settings]) -> None:
    async with open_client(make(settings, api_token=None)) as client:
        answers = [
            await client.post("/api/jobs", headers=API, json={"kind": "k"}),
            await client.get("/api/bookings", headers=CRON),
            await client.delete("/api/bookings/b-1"),
        ]

    assert [answer.status_code for answer in answers] == [404] * 3


@pytest.mark.parametrize("path", ["/docs", "/openapi.json", "/redoc", "/docs/oauth2-redirect", "/", "/api/admin"])
async def test_nothing_else_is_served_unless_asked_for(settings: Callable[..., Settings], path: str) -> None:
    async with open_client(make(settings)) as client:
        answer = await client.get(path, headers=bearer(ADMIN_TOKEN))

    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


async def test_openapi_is_served_when_asked_for(settings: Callable[..., Settings]) -> None:
    async with open_client(make(settings, openapi=True)) as client:
        answer = await client.get("/openapi.json")
        page = await client.get("/docs")

    assert (answer.status_code, page.status_code) == (200, 200)
    assert "/api/jobs" in answer.json()["paths"]


async def test_a_host_that_lies_changes_no_answer(settings: Callable[..., Settings]) -> None:
    headers = {"Host": "evil.example", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "ftp"}

    async with open_client(make(settings)) as client:
        answers = [await client.get(path, headers=headers) for path in ("/livez", "/livez/", "/api/cron/tick")]

    assert "evil" not in "".join(f"{answer.headers}{answer.text}" for answer in answers)


def test_a_route_without_a_gate_stops_the_start() -> None:
    app = FastAPI(openapi_url=None)
    app.get("/forgotten")(lambda: None)

    with pytest.raises(RuntimeError, match="/forgotten has no gate"):
        map_places(app.routes, ())


def test_what_is_no_route_of_one_address_stops_the_start_too() -> None:
    app = FastAPI(openapi_url=None)
    app.mount("/files", FastAPI())

    with pytest.raises(TypeError, match="there is no gate for it"):
        map_places(app.routes, ())
