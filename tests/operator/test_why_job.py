"""Why a job stands where it stands: each rule has its result, and the last line says what to do."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.jobs import Kind
from app.jobs.browse import JobRow, get_job
from app.jobs.why import WHAT_TO_DO, Rule, Scene, explain, look, span
from tests.operator.rows import add_job, add_tick

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def make_row(**columns: Any) -> JobRow:
    values: dict[str, Any] = {
        "id": 7,
        "queue": "default",
        "kind": "note.taken",
        "payload": {},
        "status": "ready",
        "priority": 0,
        "attempts": 0,
        "max_attempts": 8,
        "run_at": NOW - HOUR,
        "expires_at": None,
        "locked_until": None,
        "fence": 0,
        "crashes": 0,
        "last_error": None,
        "errors": [],
        "dedupe_key": None,
        "created_at": NOW - HOUR,
        "started_at": None,
        "finished_at": None,
    }
    return JobRow(**values | columns)


def make_scene(**around: Any) -> Scene:
    values: dict[str, Any] = {
        "now": NOW,
        "last_tick_at": NOW - timedelta(minutes=5),
        "kinds": {"note.taken": 10.0},
        "queues": ["default", "reminders"],
        "budget_seconds": 25.0,
        "max_crashes": 3,
    }
    return Scene(**values | around)


def why(row: JobRow | None = None, **around: Any) -> dict[str, Rule]:
    return {rule.rule: rule for rule in explain(row or make_row(), make_scene(**around))}


def test_a_due_job_that_nothing_holds_back_waits_for_the_next_tick() -> None:
    rules = why()

    assert not any(rule.is_blocking for rule in rules.values())
    assert rules["due"].result == "due since 2026-01-02 11:00:00+00:00, 1 h ago"
    assert list(rules)[-1] == WHAT_TO_DO
    assert rules[WHAT_TO_DO].result == "Nothing: the next tick claims it."


@pytest.mark.parametrize(
    ("columns", "around", "rule", "says", "advice"),
    [
        ({"run_at": NOW + HOUR}, {}, "due", "not due until 2026-01-02 13:00:00+00:00, in 1 h", "Wait"),
        ({"run_at": NOW + HOUR, "attempts": 2}, {}, "due", "after a failed attempt", "Wait"),
        ({"kind": "x"}, {}, "kind", "unknown to this build", "HANDLER_MODULES"),
        ({"queue": "slow"}, {}, "queue", "not served here", "QUEUES"),
        ({"expires_at": NOW - HOUR}, {}, "expiry", "useless since", "expired"),
        ({}, {"kinds": {"note.taken": 60.0}}, "timeout", "no tick starts it", "TICK_BUDGET_SECONDS"),
        ({}, {"last_tick_at": None}, "tick", "never a tick", "POST /api/cron/tick"),
        ({}, {"last_tick_at": NOW - 3 * HOUR}, "tick", "3 h ago", "scheduler"),
        (
            {"queue": "reminders", "payload": {"channel": "email"}},
            {"suspended": {"email": NOW + HOUR}},
            "channel",
            "suspended until 2026-01-02 13:00:00+00:00, for 1 h",
            "dormouse channels resume email",
        ),
        (
            {"status": "running", "locked_until": NOW + HOUR, "started_at": NOW},
            {},
            "lease",
            "held until 2026-01-02 13:00:00+00:00",
            "Nothing: wait",
        ),
        ({"status": "running", "locked_until": NOW - HOUR}, {}, "lease", "run out", "rescues"),
        (
            {"status": "dead", "finished_at": NOW - HOUR, "attempts": 8, "last_error": "SMTP 550"},
            {},
            "reason",
            "all 8 attempts have failed; the last one: SMTP 550",
            "dormouse jobs requeue 7",
        ),
        (
            {"status": "dead", "finished_at": NOW - HOUR, "attempts": 1, "last_error": "no such user"},
            {},
            "reason",
            "given up after 1 of 8 attempts: no such user",
            "dormouse jobs requeue 7",
        ),
        (
            {"status": "dead", "finished_at": NOW - HOUR, "attempts": 3, "crashes": 3, "last_error": "crashed"},
            {},
            "reason",
            "its process died 3 times",
            "memory",
        ),
    ],
)
def test_what_stands_in_the_way_is_named_with_what_to_do(
    columns: dict[str, Any], around: dict[str, Any], rule: str, says: str, advice: str
) -> None:
    rules = why(make_row(**columns), **around)

    assert [found.rule for found in rules.values() if found.is_blocking] == [rule]
    assert says in rules[rule].result
    assert advice in rules[WHAT_TO_DO].result


@pytest.mark.parametrize("status", ["done", "cancelled", "expired"])
def test_a_job_at_its_end_says_since_when(status: str) -> None:
    rules = why(make_row(status=status, finished_at=NOW - HOUR))

    assert status in rules["status"].result
    assert "1 h" in rules["status"].result
    assert not any(rule.is_blocking for rule in rules.values())


def test_what_is_behind_a_job_is_told_though_nothing_is_in_its_way() -> None:
    rules = why(make_row(attempts=4, crashes=1, last_error="SMTP 421"), ahead=37)

    assert rules["attempts"].result == "3 of 8 have failed; the last one: SMTP 421"
    assert "died 1 of 3 times: it runs alone" in rules["crashes"].result
    assert why(ahead=37)["turn"].result == "37 due jobs of its queue come first"
    assert why(ahead=1000)["turn"].result == "1000 or more due jobs of its queue come first"


def test_several_things_in_the_way_are_all_told() -> None:
    rules = why(make_row(kind="x", queue="slow"))

    assert all(word in rules[WHAT_TO_DO].result for word in ("HANDLER_MODULES", "QUEUES"))


@pytest.mark.parametrize(("seconds", "text"), [(0, "0 s"), (59, "59 s"), (3661, "1 h 1 min"), (90_061, "1 d 1 h")])
def test_a_span_is_told_in_two_units(seconds: int, text: str) -> None:
    assert span(NOW, NOW + timedelta(seconds=seconds)) == text


async def test_the_scene_is_read_from_the_tables(conn: Any, settings: Any) -> None:
    await add_tick(conn, 60)
    await conn.execute("INSERT INTO channels (name, suspended_until) VALUES ('email', now() + interval '1 hour')")
    await add_job(conn, priority=1)
    await add_job(conn, run_at="2026-01-01T00:00:00Z")
    job_id = await add_job(conn, run_at="2026-01-02T00:00:00Z")
    await add_job(conn, run_at="2026-01-03T00:00:00Z")
    await add_job(conn, run_at="2999-01-03T00:00:00Z", priority=1)
    row = await get_job(conn, job_id)
    assert row is not None

    scene = await look(conn, row, settings(queues="default,slow"), {"k": Kind(print, timeout=3)})

    assert (scene.ahead, scene.kinds, scene.queues) == (2, {"k": 3}, ["default", "slow", "reminders"])
    assert list(scene.suspended) == ["email"]
    assert scene.last_tick_at is not None
