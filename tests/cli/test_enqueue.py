"""`dormouse enqueue` puts one job in, once per key."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.cli.conftest import Dormouse

JOB = "SELECT kind, payload::text, queue, priority, max_attempts, run_at, dedupe_key FROM jobs WHERE id = $1"


async def test_every_option_reaches_the_row(dormouse: Dormouse, conn: Any) -> None:
    options = "--queue slow --priority 1 --max-attempts 3 --run-at 2030-01-31T09:00+07:00 --dedupe-key a:1 --json"

    ended = await dormouse("enqueue", "avatar.resize", "--payload", '{"user_id": 7}', *options.split())

    row = await conn.fetchrow(JOB, ended.json["id"])
    assert (row["kind"], row["payload"], row["queue"]) == ("avatar.resize", '{"user_id": 7}', "slow")
    assert (row["priority"], row["max_attempts"], row["dedupe_key"]) == (1, 3, "a:1")
    assert row["run_at"] == datetime(2030, 1, 31, 2, tzinfo=UTC)


async def test_a_taken_key_gives_the_job_that_holds_it(dormouse: Dormouse, conn: Any) -> None:
    first = await dormouse("enqueue", "x", "--dedupe-key", "k", "--json")
    second = await dormouse("enqueue", "x", "--dedupe-key", "k", "--json")

    assert first.json["is_new"]
    assert second.json == {"id": first.json["id"], "is_new": False}
    assert await conn.fetchval("SELECT count(*) FROM jobs") == 1


async def test_the_payload_may_come_from_standard_input(dormouse: Dormouse, conn: Any) -> None:
    ended = await dormouse("enqueue", "x", "--payload", "-", stdin='{"a": [1]}')

    assert ended.out == "job 1 enqueued\n"
    assert await conn.fetchval("SELECT payload::text FROM jobs") == '{"a": [1]}'


async def test_a_delay_counts_from_the_databases_now(dormouse: Dormouse, conn: Any) -> None:
    await dormouse("enqueue", "x", "--delay", "15m")

    wait = await conn.fetchval("SELECT run_at - created_at FROM jobs")
    assert wait == timedelta(minutes=15)


@pytest.mark.parametrize(
    "arguments",
    [
        ["x", "--payload", "{"],
        ["x", "--payload", "[1]"],
        ["x", "--payload", "[" * 100_000],
        ["x", "--payload", '{"a": NaN}'],
        ["x", "--payload", '{"a": "\\u0000"}'],
        ["x", "--payload", '{"a": "\\ud800"}'],
        ["x", "--run-at", "2030-01-31T09:00"],
        ["x", "--run-at", "1700000000000"],
        ["x", "--run-at", "tomorrow"],
        ["x", "--delay", "5 weeks"],
        ["x", "--delay", "99999d"],
        ["x", "--delay", "1m", "--run-at", "2030-01-31T09:00Z"],
        ["x", "--priority", "2"],
        ["x", "--max-attempts", "0"],
        ["x", "--max-attempts", "9" * 30],
        ["x", "--queue", ""],
        [""],
        ["k" * 201],
        ["\udcff"],
    ],
    ids=lambda arguments: " ".join(arguments)[:40].encode("ascii", "replace").decode() or "empty",
)
async def test_wrong_input_is_2_and_inserts_nothing(dormouse: Dormouse, conn: Any, arguments: list[str]) -> None:
    ended = await dormouse("enqueue", *arguments)

    assert ended.code == 2, ended
    assert "Traceback" not in ended.err
    assert await conn.fetchval("SELECT count(*) FROM jobs") == 0
