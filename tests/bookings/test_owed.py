"""Which reminders are owed: confirmed, not started, inside the offset, nothing on record. Nothing else decides."""

from datetime import timedelta

import pytest

from tests.bookings.shelf import DAY, HOUR, WEEK, book, plan, states_of

SECOND = timedelta(seconds=1)
YEAR = timedelta(days=365)


@pytest.mark.parametrize("starts_in", [SECOND * 30, HOUR, DAY - SECOND, DAY], ids=str)
async def test_a_confirmed_booking_inside_the_offset_is_owed_a_reminder(conn, starts_in):
    await book(conn, "b", starts_in)

    planned = await plan(conn)

    assert planned.planned == 1
    assert await states_of(conn, "b") == [(DAY, "planned", None)]


@pytest.mark.parametrize("starts_in", [DAY + SECOND * 30, DAY + HOUR, WEEK, YEAR * 3], ids=str)
async def test_a_booking_beyond_the_offset_waits(conn, starts_in):
    await book(conn, "b", starts_in)

    planned = await plan(conn)

    assert planned.planned == 0
    assert await states_of(conn, "b") == []


@pytest.mark.parametrize("starts_in", [-SECOND, timedelta(0), -YEAR, -10 * SECOND * 60], ids=str)
async def test_a_booking_that_has_started_is_owed_nothing(conn, starts_in):
    await book(conn, "b", starts_in, created_ago=2 * YEAR)

    planned = await plan(conn)

    assert planned.planned == 0
    assert await states_of(conn, "b") == []


@pytest.mark.parametrize("starts_in", [-HOUR, HOUR, WEEK], ids=["over", "inside", "beyond"])
@pytest.mark.parametrize("remind_before", [None, ["24:00"]], ids=["configured", "own"])
async def test_a_cancelled_booking_is_owed_nothing_whenever_it_starts(conn, starts_in, remind_before):
    await book(conn, "b", starts_in, status="cancelled", remind_before=remind_before)

    planned = await plan(conn)

    assert planned.planned == 0
    assert await states_of(conn, "b") == []


async def test_a_booking_made_inside_the_offset_is_reminded_at_the_next_tick(conn):
    await book(conn, "b", 3 * HOUR, created_ago=timedelta(minutes=10))

    first, second = await plan(conn), await plan(conn)

    assert (first.planned, second.planned) == (1, 0)


async def test_the_reminder_and_its_job_point_at_each_other(conn):
    await book(conn, "b", HOUR)

    await plan(conn)

    row = await conn.fetchrow(
        "SELECT jobs.queue, jobs.kind, jobs.status, jobs.expires_at = bookings.starts_at AS expires_at_the_start"
        " FROM reminders JOIN jobs ON jobs.id = reminders.job_id JOIN bookings ON bookings.id = reminders.booking_id"
    )
    assert tuple(row) == ("reminders", "booking.reminder", "ready", True)


async def test_the_payload_holds_the_key_and_nothing_personal(conn):
    await book(conn, "b", HOUR, email="someone@example.org")

    await plan(conn)

    payload = await conn.fetchval("SELECT payload::text FROM jobs")
    assert "someone" not in payload
    assert "Mali" not in payload
    assert '"booking_id": "b"' in payload


async def test_lateness_counts_from_the_moment_at_which_the_reminder_was_owed(conn):
    await book(conn, "old", DAY - 6 * HOUR)
    await book(conn, "new", DAY - 6 * HOUR, created_ago=HOUR)

    await plan(conn)

    rows = await conn.fetch("SELECT round(extract(epoch FROM now() - run_at)) AS late FROM jobs ORDER BY run_at")
    assert [round(float(row["late"]) / 60) for row in rows] == [360, 60]


async def test_what_is_next_due_is_the_nearest_start_less_its_offset(conn):
    await book(conn, "far", WEEK)
    await book(conn, "near", DAY + HOUR)

    planned = await plan(conn)

    waits = await conn.fetchval("SELECT extract(epoch FROM $1::timestamptz - now())::float8", planned.next_due_at)
    assert 3590 < waits < 3601


async def test_planning_again_plans_nothing_again(conn):
    await book(conn, "b", HOUR)
    await plan(conn)

    again = [await plan(conn) for _ in range(3)]

    assert [planned.planned for planned in again] == [0, 0, 0]
    assert await conn.fetchval("SELECT count(*) FROM jobs") == 1
