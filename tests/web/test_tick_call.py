"""POST /api/cron/tick: the secret opens it, the settings bound it, the summary answers it."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.config import Settings
from app.main import create_app
from tests.servers import free_port
from tests.web.conftest import API, CRON, CRON_SECRET, bearer

TICK = "/api/cron/tick"


async def test_a_tick_without_a_body_answers_with_its_summary(client: httpx.AsyncClient) -> None:
    answer = await client.post(TICK, headers=CRON)

    summary = answer.json()
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert (summary["ok"], summary["source"], summary["stopped_by"]) == (True, "api", "empty")


async def test_a_tick_takes_what_its_body_asks_for(client: httpx.AsyncClient, conn: Any) -> None:
    body = {"jobs": 1, "reminders": 0, "budget_seconds": 5, "dry_run": True}

    answer = await client.post(TICK, headers=CRON, json=body)

    assert answer.status_code == 200
    assert await conn.fetchval("SELECT count(*) FROM ticks") == 0


@pytest.mark.parametrize("body", [b"", b"null", b"{}"])
async def test_an_empty_wish_is_the_usual_tick(client: httpx.AsyncClient, body: bytes) -> None:
    answer = await client.post(TICK, headers=CRON | {"Content-Type": "application/json"}, content=body)

    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("body", "setting"),
    [
        ({"jobs": 101}, "TICK_JOBS"),
        ({"reminders": 101}, "TICK_REMINDERS"),
        ({"budget_seconds": 25.5}, "TICK_BUDGET_SECONDS"),
    ],
)
async def test_more_than_a_setting_allows_gets_422_and_its_name(
    client: httpx.AsyncClient, body: dict[str, Any], setting: str
) -> None:
    answer = await client.post(TICK, headers=CRON, json=body)

    assert answer.status_code == 422
    assert setting in answer.json()["detail"]


@pytest.mark.parametrize(
    "body",
    [{"job": 1}, {"jobs": -1}, {"jobs": 1.5}, {"jobs": "1"}, {"jobs": True}, {"jobs": []}, {"dry_run": "yes"},
     {"dry_run": 1}, {"budget_seconds": 0}, {"budget_seconds": "5"}, {"budget_seconds": 1e300}, [], "x", 1, True],
)  # fmt: skip
async def test_a_body_that_does_not_fit_gets_422(client: httpx.AsyncClient, body: Any) -> None:
    answer = await client.post(TICK, headers=CRON, json=body)

    assert answer.status_code == 422
    assert {"type", "title", "status", "detail", "errors"} == set(answer.json())


@pytest.mark.parametrize(
    ("header", "source"),
    [({}, "api"), ({"X-Tick-Source": "github"}, "github"), ({"X-Tick-Source": "Evil <b>"}, "api"),
     ({"X-Tick-Source": "x" * 33}, "api"), ({"X-Tick-Source": ""}, "api")],
)  # fmt: skip
async def test_the_caller_may_name_itself_in_a_few_plain_letters(
    client: httpx.AsyncClient, header: dict[str, str], source: str
) -> None:
    answer = await client.post(TICK, headers=CRON | header)

    assert answer.json()["source"] == source


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT"])
async def test_only_post_ticks(client: httpx.AsyncClient, conn: Any, method: str) -> None:
    answer = await client.request(method, TICK, headers=CRON)

    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert await conn.fetchval("SELECT count(*) FROM ticks") == 0


@pytest.mark.parametrize("headers", [{}, API, bearer(CRON_SECRET + "x"), bearer("undefined")])
async def test_who_has_not_the_secret_makes_no_connection(
    application: FastAPI, client: httpx.AsyncClient, conn: Any, headers: dict[str, str]
) -> None:
    answer = await client.post(f"{TICK}?token={CRON_SECRET}", headers=headers, json={"jobs": 1})

    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert application.state.services.database._pool is None  # noqa: SLF001 - nothing else can tell
    assert await conn.fetchval("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'dormouse'") == 0


@pytest.mark.parametrize("path", [f"{TICK}/", f"/{TICK}", "/api/cron", "/api/cron/tick2", "/API/CRON/TICK"])
async def test_there_is_one_address_and_no_redirect_to_it(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.post(httpx.URL("http://test").copy_with(raw_path=path.encode()), headers=CRON)

    assert answer.status_code == 404


async def test_no_name_of_an_environment_switches_the_gate_off(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"ENV": "development", "ENVIRONMENT": "test", "DEBUG": "1", "CI": "true"}.items():
        monkeypatch.setenv(name, value)

    answer = await client.post(TICK)

    assert answer.status_code == 401


async def test_a_database_that_cannot_be_reached_gets_503_and_when_to_return(
    settings: Callable[..., Settings],
) -> None:
    dsn = f"postgresql://user:canary@127.0.0.1:{free_port()}/name"
    app = create_app(settings(database_url=dsn, cron_secret=CRON_SECRET, connect_timeout_seconds=0.3))

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        answer = await client.post(TICK, headers=CRON)

    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    assert not any(word in answer.text for word in ("canary", "127.0.0.1", "user", "Error"))


async def test_a_database_without_our_tables_gets_503_and_what_to_run(client: httpx.AsyncClient, conn: Any) -> None:
    await conn.execute("DROP TABLE channels, ticks, reminders, bookings, jobs CASCADE")

    answer = await client.post(TICK, headers=CRON)

    assert answer.status_code == 503
    assert "dormouse migrate" in answer.json()["detail"]


async def test_a_caller_that_hangs_up_changes_nothing(served: Callable[..., Any], conn: Any) -> None:
    serving = served()
    await conn.execute("INSERT INTO jobs (kind, payload) VALUES ('nobody.serves', '{}')")
    lock = conn.transaction()
    await lock.start()
    await conn.execute("LOCK TABLE ticks IN ACCESS EXCLUSIVE MODE")
    line = serving.connect()
    line.sendall(f"POST {TICK} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {CRON_SECRET}\r\n\r\n".encode())
    await _wait_for_lock(conn)

    line.close()
    await lock.commit()

    assert await _count_ticks(conn) == 1


async def _wait_for_lock(conn: Any) -> None:
    await _until_true(conn, "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted)")


async def _count_ticks(conn: Any) -> int:
    await _until_true(conn, "SELECT EXISTS (SELECT 1 FROM ticks)")
    return int(await conn.fetchval("SELECT count(*) FROM ticks"))


async def _until_true(conn: Any, question: str) -> None:
    """Ask the database again and again: it alone knows when another process has got there."""
    async with asyncio.timeout(10):
        while not await conn.fetchval(question):  # noqa: ASYNC110 - nothing here could set an event
            await asyncio.sleep(0.01)
