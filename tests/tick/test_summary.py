"""The summary is the contract with every caller: these names in this order, JSON, ids and counts only."""

import json
import re
from datetime import datetime
from typing import Any

import pytest

from app.jobs import Job, Kind, NewJob, enqueue, enqueue_many
from tests.bookings.shelf import DAY, HOUR, book, book_many
from tests.tick.ticking import tick_once

SKIPPED = {"cancelled": int, "moved": int, "started": int, "superseded": int}
SHAPE: dict[str, Any] = {
    "ok": bool,
    "attention": list,
    "warnings": list,
    "errors": list,
    "tick_id": str,
    "source": str,
    "version": str,
    "started_at": str,
    "duration_ms": int,
    "stopped_by": str,
    "jobs": {
        "claimed": int, "done": int, "retried": int, "dead": int, "snoozed": int, "expired": int, "lost": int,
        "released": int,
    },
    "reminders": {
        "planned": int, "claimed": int, "sent": int, "retried": int, "failed": int, "uncertain": int,
        "skipped": SKIPPED, "lost": int, "released": int,
    },
    "rescued": int,
    "crashed": int,
    "pruned": int,
    "alerted": int,
    "backlog": {
        "due": int, "reminders_due": int, "capped": bool, "oldest_due_age_seconds": float, "dead": int,
        "unknown_kinds": dict,
    },
    "more_due": bool,
    "next_due_at": str,
    "lateness_seconds": {"p50": float, "max": float},
    "tick_gap_seconds": float,
    "round_trips": int,
}  # fmt: skip


async def note(job: Job) -> None:
    """Take note."""


def assert_shaped(found, shape, path="summary") -> None:
    """Compare names, order and types, all the way down."""
    assert list(found) == list(shape), path
    for name, kind in shape.items():
        if isinstance(kind, dict):
            assert_shaped(found[name], kind, f"{path}.{name}")
        else:
            assert isinstance(found[name], kind), f"{path}.{name}"


async def test_a_full_summary_has_the_names_order_and_types_of_the_contract(services, conn):
    made = services({"note.taken": Kind(note)})
    await tick_once(made)
    await enqueue_many(conn, [NewJob("note.taken") for _ in range(3)])
    await enqueue(conn, "nobody.knows")
    await book(conn, "b", HOUR)
    await book(conn, "later", DAY + HOUR)

    summary = await tick_once(made, source="github")

    assert_shaped(summary, SHAPE)
    assert summary["source"] == "github"
    assert summary["jobs"] | {"claimed": 3, "done": 3} == summary["jobs"]


async def test_an_empty_summary_has_the_same_names_in_the_same_order(services):
    summary = await tick_once(services())

    assert list(summary) == list(SHAPE)
    assert list(summary["reminders"]) == list(SHAPE["reminders"])
    assert (summary["ok"], summary["more_due"], summary["next_due_at"]) == (True, False, None)
    assert summary["lateness_seconds"] == {"p50": None, "max": None}
    assert summary["backlog"]["oldest_due_age_seconds"] is None


async def test_the_summary_on_record_is_the_one_that_was_answered(services, conn):
    made = services({"note.taken": Kind(note)})
    await enqueue(conn, "note.taken")

    answered = await tick_once(made, source="github")

    row = await conn.fetchrow(
        "SELECT id::text, source, summary::text, finished_at >= started_at AS in_order FROM ticks"
    )
    recorded = json.loads(row["summary"])
    assert (row["id"], row["source"], row["in_order"]) == (answered["tick_id"], "github", True)
    assert {**recorded, "duration_ms": 0} == {**answered, "duration_ms": 0}


async def test_the_summary_holds_no_personal_data(services, conn):
    async def fail(job: Job) -> None:
        raise ValueError(f"could not reach {job.payload['who']}")

    made = services({"guest.called": Kind(fail)})
    await enqueue(conn, "guest.called", {"who": "guest@example.org"}, max_attempts=1)
    await book(conn, "Mali's haircut", HOUR, email="mali@example.org")
    await book(conn, "bad", HOUR, email="not an address of Somchai")

    text = json.dumps(await tick_once(made))

    assert not re.search("guest|mali|haircut|somchai|example", text, re.IGNORECASE)


async def test_kinds_that_nobody_here_knows_are_reported_and_left_alone(services, conn):
    made = services({"note.taken": Kind(note)})
    await enqueue_many(conn, [NewJob("nobody.knows"), NewJob("nobody.knows"), NewJob("nor.this"), NewJob("note.taken")])

    summary = await tick_once(made)

    rows = await conn.fetch("SELECT status, attempts FROM jobs WHERE kind <> 'note.taken'")
    assert summary["backlog"]["unknown_kinds"] == {"nobody.knows": 2, "nor.this": 1}
    assert (summary["ok"], summary["attention"]) == (False, ["unknown_kinds"])
    assert summary["jobs"]["done"] == 1
    assert summary["more_due"] is False
    assert {tuple(row) for row in rows} == {("ready", 0)}


async def test_queues_that_nobody_here_serves_are_warned_of_and_left_alone(services, conn):
    made = services({"note.taken": Kind(note)})
    await enqueue(conn, "note.taken", queue="films")

    summary = await tick_once(made)

    assert (summary["ok"], summary["warnings"]) == (True, ["unserved_queues"])
    assert (summary["jobs"]["claimed"], summary["backlog"]["due"], summary["more_due"]) == (0, 1, False)


async def test_queues_that_are_served_take_turns(services, conn):
    made = services({"note.taken": Kind(note)}, queues=("films", "mails"), job_concurrency=2)
    for queue in ("films", "mails"):
        await enqueue_many(conn, [NewJob("note.taken", queue=queue) for _ in range(30)])

    summary = await tick_once(made, jobs=40)

    done = await conn.fetch("SELECT queue, count(*) FROM jobs WHERE status = 'done' GROUP BY queue")
    assert summary["jobs"]["done"] == 40
    assert {row["queue"] for row in done} == {"films", "mails"}


async def test_lateness_is_told_and_warned_of_after_half_an_hour(services, conn):
    made = services({"note.taken": Kind(note)})
    await enqueue_many(conn, [NewJob("note.taken") for _ in range(3)])
    await conn.execute("UPDATE jobs SET run_at = now() - id * interval '20 minutes'")

    summary = await tick_once(made)

    assert summary["lateness_seconds"]["p50"] == pytest.approx(2400, abs=5)
    assert summary["lateness_seconds"]["max"] == pytest.approx(3600, abs=5)
    assert (summary["ok"], summary["warnings"]) == (True, ["late"])


async def test_the_gap_since_the_last_tick_is_told_and_warned_of_after_an_hour(services, conn):
    made = services()
    await tick_once(made)
    await conn.execute("UPDATE ticks SET started_at = started_at - interval '12 hours'")

    late, soon = await tick_once(made), await tick_once(made)

    assert late["tick_gap_seconds"] == pytest.approx(12 * 3600, abs=10)
    assert late["warnings"] == ["tick_gap"]
    assert soon["tick_gap_seconds"] < 10
    assert soon["warnings"] == []


async def test_the_backlog_is_counted_up_to_a_cap(services, conn):
    made = services({"note.taken": Kind(note)})
    await enqueue_many(conn, [NewJob("note.taken") for _ in range(1200)])

    summary = await tick_once(made, jobs=1)

    assert (summary["backlog"]["due"], summary["backlog"]["capped"]) == (1000, True)
    assert summary["more_due"] is True


async def test_below_the_cap_the_backlog_is_exact(services, conn):
    made = services({"note.taken": Kind(note)})
    await enqueue_many(conn, [NewJob("note.taken") for _ in range(120)])
    await conn.execute("UPDATE jobs SET run_at = now() - interval '90 s'")

    summary = await tick_once(made)

    assert (summary["backlog"]["due"], summary["backlog"]["capped"]) == (20, False)
    assert summary["backlog"]["oldest_due_age_seconds"] == pytest.approx(90, abs=5)
    assert (summary["stopped_by"], summary["more_due"]) == ("batch", True)


async def test_more_reminders_than_a_batch_are_more_that_is_due(services, conn):
    await book_many(conn, 5)

    first, second, third = [await tick_once(services(), reminders=2) for _ in range(3)]

    assert [first["more_due"], second["more_due"], third["more_due"]] == [True, True, False]
    assert third["reminders"]["sent"] == 1


@pytest.mark.parametrize(
    ("job_in", "booking_in", "expected"), [(3, 2, 2), (2, 3, 2), (None, 2, 2), (2, None, 2), (None, None, None)]
)
async def test_what_is_next_due_is_the_nearer_of_job_and_reminder(services, conn, job_in, booking_in, expected):
    made = services({"note.taken": Kind(note)})
    if job_in is not None:
        await enqueue(conn, "note.taken")
        await conn.execute("UPDATE jobs SET run_at = now() + $1 * interval '1 hour'", job_in)
    if booking_in is not None:
        await book(conn, "b", DAY + booking_in * HOUR)

    summary = await tick_once(made)

    if expected is None:
        assert summary["next_due_at"] is None
    else:
        due = datetime.fromisoformat(summary["next_due_at"])
        waits = await conn.fetchval("SELECT extract(epoch FROM $1::timestamptz - now())::float8", due)
        assert waits == pytest.approx(expected * 3600, abs=10)


async def test_each_tick_has_an_id_of_its_own(services):
    made = services()

    summaries = [await tick_once(made) for _ in range(3)]

    assert len({summary["tick_id"] for summary in summaries}) == 3


async def test_finished_rows_go_after_their_time_and_what_is_unfinished_or_dead_never(services, conn):
    made = services({"note.taken": Kind(note)})
    await book(conn, "b", HOUR)
    await tick_once(made)
    await enqueue_many(conn, [NewJob("old.kind", {"n": n}) for n in range(5)])
    await conn.execute(
        "UPDATE jobs SET status = (ARRAY['done', 'cancelled', 'expired', 'dead', 'ready'])[1 + (payload->>'n')::int],"
        " finished_at = CASE WHEN payload->>'n' <> '4' THEN now() - interval '1 year' END,"
        " run_at = now() - interval '1 year' WHERE kind = 'old.kind'"
    )
    await conn.execute("UPDATE jobs SET finished_at = now() - interval '1 year' WHERE queue = 'reminders'")

    summary = await tick_once(made)

    left = [row["status"] for row in await conn.fetch("SELECT status FROM jobs ORDER BY id")]
    assert summary["pruned"] == 4
    assert left == ["dead", "ready"]
    assert await conn.fetchval("SELECT status FROM reminders") == "sent"


async def test_retention_removes_no_reminder_that_was_not_sent(services, conn):
    made = services(done_retention_days=0)
    await book(conn, "b", HOUR)
    await tick_once(made, reminders=0)
    await conn.execute("UPDATE bookings SET created_at = now() - interval '1 year'")

    first, second = await tick_once(made), await tick_once(made)

    assert (first["reminders"]["sent"], second["reminders"]["sent"]) == (1, 0)
    assert await conn.fetchval("SELECT count(*) FROM reminders") == 1
