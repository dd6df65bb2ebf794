"""The same commands at a running service: `--url` asks its API, and shows what the database would have shown."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Dormouse
from tests.operator.rows import add_job, add_tick
from tests.servers import free_port
from tests.web.serving import Serving, serve

ADMIN_TOKEN = "admin-" + "0123456789abcdef" * 3
WRONG_TOKEN = "wrong-" + "0123456789abcdef" * 3


@pytest.fixture
def service(dsn: str, tmp_path: Path) -> Iterator[Serving]:
    values = {"DATABASE_URL": dsn, "CRON_SECRET": "tick-" + "0123456789abcdef" * 3, "ADMIN_TOKEN": ADMIN_TOKEN}
    with serve(tmp_path, values | {"OUTBOX_DIR": str(tmp_path / "outbox")}) as serving:
        yield serving


async def test_the_answer_is_the_same_at_the_database_and_at_the_service(
    dormouse: Dormouse, conn: Any, service: Serving
) -> None:
    await add_tick(conn)
    job = str(await add_job(conn, "nobody.knows", "dead", last_error="SMTP said 550", attempts=8))
    await conn.execute("INSERT INTO bookings (id, starts_at) VALUES ('shop/7', '2030-01-31T09:00Z')")
    commands = [
        ("jobs", "list", "--status", "dead", "--error", "smtp", "--since", "2026-01-01T00:00Z"),
        ("jobs", "show", job),
        ("jobs", "requeue-many", "--kind", "nobody.knows", "--dry-run"),
        ("channels", "list"),
    ]

    for words in commands:
        near = await dormouse(*words, "--json")
        far = await dormouse(*words, "--json", "--url", service.url, ADMIN_TOKEN=ADMIN_TOKEN, DATABASE_URL="")

        assert (near.code, far.code) == (0, 0), far.err
        assert near.json == far.json

    rules = [
        await dormouse(*words, "--json", *where, ADMIN_TOKEN=ADMIN_TOKEN)
        for words in (("jobs", "why", job), ("bookings", "why", "shop/7"))
        for where in ((), ("--url", service.url))
    ]
    names = [[rule["rule"] for rule in ended.json["rules"]] for ended in rules]
    assert names[0] == names[1] == ["status", "reason", "kind", "what to do"]
    assert names[2] == names[3]


async def test_jobs_are_changed_at_the_service(dormouse: Dormouse, conn: Any, service: Serving) -> None:
    ids = [await add_job(conn, "mail.sent", "dead") for _ in range(3)]
    at_service = ("--url", service.url)

    one = await dormouse("jobs", "requeue", str(ids[0]), *at_service, ADMIN_TOKEN=ADMIN_TOKEN)
    again = await dormouse("jobs", "requeue", str(ids[0]), *at_service, ADMIN_TOKEN=ADMIN_TOKEN)
    rest = await dormouse("jobs", "requeue-many", "--all", *at_service, ADMIN_TOKEN=ADMIN_TOKEN)
    none = await dormouse("jobs", "show", "999", *at_service, ADMIN_TOKEN=ADMIN_TOKEN)

    assert (one.code, one.out) == (0, f"job {ids[0]} requeued\n")
    assert (again.code, again.err) == (5, f"dormouse: job {ids[0]} is ready: only a dead job can be requeued\n")
    assert (rest.code, rest.out.splitlines()[0]) == (0, "2 jobs requeued")
    assert (none.code, none.err) == (5, "dormouse: there is no job 999.\n")
    assert await conn.fetchval("SELECT count(*) FROM jobs WHERE status = 'ready'") == 3


async def test_a_service_that_refuses_or_is_away_is_told_in_a_sentence(dormouse: Dormouse, service: Serving) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"

    ended = {
        "refused": await dormouse("channels", "list", "--url", service.url, ADMIN_TOKEN=WRONG_TOKEN),
        "unset": await dormouse("channels", "list", "--url", service.url),
        "away": await dormouse("channels", "list", "--url", nowhere, ADMIN_TOKEN=ADMIN_TOKEN),
        "clear": await dormouse("channels", "list", "--url", "http://jobs.example.com", ADMIN_TOKEN=ADMIN_TOKEN),
        "other": await dormouse("channels", "list", "--url", f"{service.url}/other", ADMIN_TOKEN=ADMIN_TOKEN),
    }

    assert {name: end.code for name, end in ended.items()} == {
        "refused": 2,
        "unset": 2,
        "away": 3,
        "clear": 2,
        "other": 5,
    }
    assert "ADMIN_TOKEN is not set" in ended["unset"].err
    assert "does not answer" in ended["away"].err
    assert all(ADMIN_TOKEN not in end.err and "Traceback" not in end.err for end in ended.values())
