"""A booking that started unreminded is put on record and shown to a person, once."""

from datetime import timedelta

import pytest

from tests.bookings.shelf import DAY, HOUR, WEEK, book, book_many, plan, states_of
from tests.tick.ticking import tick_once

MINUTE = timedelta(minutes=1)
AGE_TICKS = "UPDATE ticks SET started_at = started_at - $1::interval, finished_at = finished_at - $1::interval"


async def let_pass(conn, seconds: timedelta) -> None:
    """Let so much time pass since the ticks so far."""
    await conn.execute(AGE_TICKS, seconds)


async def test_a_booking_that_started_since_the_last_tick_unreminded_is_missed_once(services, conn):
    made = services()
    await tick_once(made)
    await let_pass(conn, 6 * HOUR)
    await book(conn, "b", -HOUR)

    first, second = await tick_once(made), await tick_once(made)

    assert first["attention"] == ["reminders_missed"]
    assert first["ok"] is False
    assert first["reminders"]["skipped"]["started"] == 1
    assert (second["attention"], second["reminders"]["skipped"]["started"]) == ([], 0)
    assert await states_of(conn, "b") == [(DAY, "skipped", "started")]


@pytest.mark.parametrize(
    "booking",
    [
        {"status": "cancelled"},
        {"remind_before": []},
        {"created_ago": MINUTE},
    ],
    ids=["cancelled", "wants none", "entered after its start"],
)
async def test_a_booking_that_was_owed_no_reminder_is_not_missed(services, conn, booking):
    made = services()
    await tick_once(made)
    await let_pass(conn, 6 * HOUR)
    await book(conn, "b", -HOUR, **booking)

    summary = await tick_once(made)

    assert summary["attention"] == []
    assert await states_of(conn, "b") == []


async def test_a_booking_that_was_reminded_is_not_missed_when_it_starts(services, conn):
    made = services()
    await book(conn, "b", HOUR)
    await tick_once(made)
    await let_pass(conn, 6 * HOUR)
    await conn.execute("UPDATE bookings SET starts_at = now() - interval '1 minute', ends_at = NULL")
    await conn.execute("UPDATE reminders SET starts_at = (SELECT starts_at FROM bookings)")

    summary = await tick_once(made)

    assert summary["attention"] == []


async def test_the_first_tick_ever_reports_nothing_of_the_past(services, conn):
    await book(conn, "b", -HOUR)
    await book(conn, "old", -52 * WEEK, created_ago=104 * WEEK)

    summary = await tick_once(services())

    assert summary["attention"] == []


async def test_a_reminder_whose_job_expired_is_missed_once(services, conn):
    made = services()
    await book(conn, "b", HOUR)
    await plan(conn)
    await conn.execute("UPDATE bookings SET starts_at = now() - interval '1 minute', ends_at = NULL")
    await conn.execute("UPDATE reminders SET starts_at = (SELECT starts_at FROM bookings)")
    await conn.execute("UPDATE jobs SET expires_at = (SELECT starts_at FROM bookings)")

    first, second = await tick_once(made), await tick_once(made)

    assert first["attention"] == ["reminders_missed"]
    assert (second["attention"], second["reminders"]["skipped"]["started"]) == ([], 0)
    assert await states_of(conn, "b") == [(DAY, "skipped", "started")]


async def test_a_tick_that_may_send_nothing_still_notes_what_was_missed(services, conn):
    made = services()
    await tick_once(made)
    await let_pass(conn, 6 * HOUR)
    await book(conn, "b", -HOUR)

    summary = await tick_once(made, reminders=0)

    assert summary["attention"] == ["reminders_missed"]


async def test_a_tick_that_could_not_plan_leaves_what_was_missed_to_the_next(services, conn):
    made = services()
    await tick_once(made)
    await let_pass(conn, 6 * HOUR)
    await book(conn, "b", -HOUR)
    await conn.execute("ALTER TABLE bookings RENAME TO away")
    failed = await tick_once(made)
    await conn.execute("ALTER TABLE away RENAME TO bookings")

    summary = await tick_once(made)

    assert [error["section"] for error in failed["errors"]] == ["plan"]
    assert summary["attention"] == ["reminders_missed"]


async def test_all_that_was_missed_in_a_long_gap_is_noted_at_once(services, conn):
    made = services()
    await tick_once(made)
    await let_pass(conn, 12 * HOUR)
    await book_many(conn, 250, -2 * HOUR)

    first, second = await tick_once(made), await tick_once(made)

    assert first["reminders"]["skipped"]["started"] == 250
    assert second["reminders"]["skipped"]["started"] == 0
