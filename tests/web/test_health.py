"""/livez never asks the database; /readyz asks it once a second at most, and always answers soon."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.config import Settings
from app.main import create_app
from app.web import health
from tests.servers import free_port
from tests.web.conftest import CRON, CRON_SECRET


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_process_is_alive_without_a_database(
    application: FastAPI, client: httpx.AsyncClient, method: str
) -> None:
    answer = await client.request(method, "/livez")

    assert answer.status_code == 200
    assert application.state.services.database._pool is None  # noqa: SLF001 - nothing else can tell


async def test_a_fresh_database_is_ready_and_has_seen_no_tick(client: httpx.AsyncClient) -> None:
    answer = await client.get("/readyz")

    assert answer.status_code == 200
    assert answer.json() == {"status": "ready", "schema": answer.json()["schema"], "last_tick_age_seconds": None}


async def test_the_age_of_the_last_tick_is_told(client: httpx.AsyncClient, conn: Any) -> None:
    await client.post("/api/cron/tick", headers=CRON)
    await conn.execute("UPDATE ticks SET started_at = now() - interval '90 seconds'")

    answer = await client.get("/readyz")

    assert 90 <= answer.json()["last_tick_age_seconds"] < 120


@pytest.mark.parametrize("damage", ["DROP TABLE alembic_version", "UPDATE alembic_version SET version_num = '0000'"])
async def test_a_schema_that_is_behind_is_not_ready(client: httpx.AsyncClient, conn: Any, damage: str) -> None:
    await conn.execute(damage)

    answer = await client.get("/readyz")

    assert answer.status_code == 503
    assert "dormouse migrate" in answer.json()["detail"]


async def test_a_schema_that_is_ahead_is_ready(client: httpx.AsyncClient, conn: Any) -> None:
    await conn.execute("UPDATE alembic_version SET version_num = '9999'")

    answer = await client.get("/readyz")

    assert (answer.status_code, answer.json()["schema"]) == (200, "9999")


async def test_a_database_that_refuses_is_not_ready(
    settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "LOOK_SECONDS", 0.3)

    answer = await _ask(settings, free_port())

    assert answer.status_code == 503
    assert answer.headers["retry-after"]


async def test_a_database_that_never_answers_is_not_ready_after_the_limit(
    settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "LOOK_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        async with asyncio.timeout(5):
            answer = await _ask(settings, silent.getsockname()[1])

    assert answer.status_code == 503


async def _ask(settings: Callable[..., Settings], port: int) -> httpx.Response:
    app = create_app(settings(database_url=f"postgresql://u@127.0.0.1:{port}/n", cron_secret=CRON_SECRET))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        answer = await client.get("/readyz")
    await app.state.services.database.close()
    return answer


async def test_a_crowd_that_asks_costs_one_connection(client: httpx.AsyncClient, conn: Any) -> None:
    answers = await asyncio.gather(*(client.get("/readyz") for _ in range(50)))

    assert {answer.status_code for answer in answers} == {200}
    assert await conn.fetchval("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'dormouse'") == 1


async def test_a_database_that_hangs_in_the_middle_is_not_ready_until_it_answers_again(
    client: httpx.AsyncClient, conn: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "LOOK_SECONDS", 0.3)
    monkeypatch.setattr(health, "FRESH_SECONDS", 0.0)
    assert (await client.get("/readyz")).status_code == 200

    async with conn.transaction():
        await conn.execute("LOCK TABLE alembic_version IN ACCESS EXCLUSIVE MODE")
        hung = [(await client.get("/readyz")).status_code for _ in range(3)]

    assert hung == [503] * 3
    assert (await client.get("/readyz")).status_code == 200
