"""The code that the manual gives is run as it stands: its handlers by a tick, its enqueue in Python, its SQL."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.channels.suspension import suspend, suspended
from app.tick import Budget, run
from tests.channels.http_server import answer, http_server
from tests.readme.manual import blocks, in_code, module

SHOP = "CREATE TABLE orders (id int PRIMARY KEY); CREATE TABLE receipts (order_id int PRIMARY KEY)"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The manual's own modules, importable as they are from the folder that the program is started in."""
    (tmp_path / "shop").mkdir()
    for name in ("shop/jobs.py", "shop/orders.py"):
        (tmp_path / name).write_text(module(name))
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name == "shop" or name.startswith("shop.")]:
        del sys.modules[name]


@pytest.mark.usefixtures("shop")
async def test_the_handlers_run_as_they_stand_there(conn: Any, services: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    await conn.execute(SHOP)
    orders = importlib.import_module("shop.orders")
    async with http_server(answer(200)) as partner:
        monkeypatch.setattr("shop.jobs.PARTNER_URL", partner.url)
        await orders.place_order(conn, 7)
        await orders.tell_all(conn, [7, 8])
        served = services(handler_modules="shop.jobs")

        summary = await run(served, Budget.from_settings(served.settings))

    assert summary.as_dict()["jobs"]["done"] == 3
    assert await conn.fetchval("SELECT array_agg(order_id) FROM receipts") == [7]
    assert sorted(request.json["order_id"] for request in partner.requests) == [7, 8]
    assert len({request.headers["idempotency-key"] for request in partner.requests}) == 2


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(("status", "outcome"), [(429, "retried"), (404, "dead"), (500, "retried")])
async def test_the_partners_refusals_end_as_it_says(
    conn: Any, services: Any, monkeypatch: pytest.MonkeyPatch, status: int, outcome: str
) -> None:
    orders = importlib.import_module("shop.orders")
    async with http_server(answer(status)) as partner:
        monkeypatch.setattr("shop.jobs.PARTNER_URL", partner.url)
        await orders.tell_all(conn, [7])
        served = services(handler_modules="shop.jobs")

        summary = await run(served, Budget.from_settings(served.settings))

    assert summary.as_dict()["jobs"][outcome] == 1


async def test_the_sql_runs_as_it_stands_there(conn: Any) -> None:
    await conn.execute(SHOP)
    insert, function = blocks("sql")

    await conn.execute(insert)
    first = await conn.fetchrow(function)
    second = await conn.fetchrow(function)

    assert (first["is_new"], second["is_new"]) == (True, False)
    assert first["id"] == second["id"]
    kinds = await conn.fetch("SELECT kind, priority, max_attempts FROM jobs ORDER BY id")
    assert [tuple(row) for row in kinds] == [("receipt.write", 0, 8), ("partner.tell", 1, 5)]


async def test_a_channel_is_resumed_by_the_statement_that_it_gives(conn: Any) -> None:
    statement = next(text for text in in_code() if text.startswith("UPDATE channels"))
    await suspend(conn, "email", 900, "a quota")

    await conn.execute(statement)

    assert await suspended(conn) == []
