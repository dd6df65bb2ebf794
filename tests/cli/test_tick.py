"""`dormouse tick` is the tick without HTTP: the same summary, and an exit code for it."""

from typing import Any

import pytest

from tests.cli.conftest import Dormouse

INSERT = "INSERT INTO jobs (kind, payload, max_attempts) VALUES ($1, $2, 1)"
SHOP = """
from app.jobs import Kind, Permanent

async def pack(job):
    if job.payload.get("broken"):
        raise Permanent("it is broken")

HANDLERS = {"order.pack": Kind(pack)}
"""


@pytest.fixture
def shop(tmp_path: Any) -> dict[str, str]:
    """A module of the user's own, in the folder that the program is started from."""
    (tmp_path / "shop.py").write_text(SHOP)
    return {"HANDLER_MODULES": "shop"}


async def test_it_runs_what_is_due_and_prints_the_summary(dormouse: Dormouse, conn: Any, shop: dict[str, str]) -> None:
    await conn.execute(INSERT, "order.pack", "{}")

    ended = await dormouse("tick", "--json", **shop)

    assert ended.code == 0, ended
    assert (ended.json["ok"], ended.json["source"], ended.json["jobs"]["done"]) == (True, "cli", 1)
    assert await conn.fetchval("SELECT status FROM jobs") == "done"


async def test_for_people_it_leaves_out_what_is_nothing(dormouse: Dormouse, conn: Any, shop: dict[str, str]) -> None:
    await conn.execute(INSERT, "order.pack", "{}")

    ended = await dormouse("tick", **shop)

    assert "claimed 1  done 1" in ended.out
    assert "retried" not in ended.out


async def test_a_dead_job_makes_it_1(dormouse: Dormouse, conn: Any, shop: dict[str, str]) -> None:
    await conn.execute(INSERT, "order.pack", '{"broken": true}')

    ended = await dormouse("tick", "--json", **shop)

    assert ended.code == 1
    assert "jobs_dead" in ended.json["attention"]


async def test_a_dry_run_runs_nothing(dormouse: Dormouse, conn: Any, shop: dict[str, str]) -> None:
    await conn.execute(INSERT, "order.pack", "{}")

    ended = await dormouse("tick", "--dry-run", "--json", **shop)

    assert ended.json["jobs"]["done"] == 0
    assert ended.json["backlog"]["due"] == 1
    assert await conn.fetchval("SELECT status FROM jobs") == "ready"


@pytest.mark.parametrize(
    "option", ["--jobs=101", "--reminders=101", "--budget-seconds=26", "--budget-seconds=nan", "--budget-seconds=0"]
)
async def test_an_option_outside_its_bounds_is_2(dormouse: Dormouse, dsn: str, option: str) -> None:
    ended = await dormouse("tick", option)

    assert ended.code == 2, ended
    assert option.partition("=")[0] in ended.err


@pytest.mark.parametrize("modules", ["nowhere.at_all", "json"])
async def test_a_handler_module_that_does_not_do_is_2(dormouse: Dormouse, dsn: str, modules: str) -> None:
    ended = await dormouse("tick", HANDLER_MODULES=modules)

    assert ended.code == 2
    assert f"HANDLER_MODULES: {modules}" in ended.err


async def test_a_bad_mail_address_stops_it_before_any_attempt_is_spent(dormouse: Dormouse, conn: Any) -> None:
    await conn.execute("INSERT INTO jobs (kind, queue) VALUES ('booking.reminder', 'reminders')")

    ended = await dormouse("tick", EMAIL_URL="gopher://x", HANDLER_MODULES="nowhere")

    assert ended.code == 2
    assert "EMAIL_URL" in ended.err
    assert "HANDLER_MODULES" in ended.err
    assert await conn.fetchval("SELECT attempts FROM jobs") == 0
