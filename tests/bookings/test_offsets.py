"""Offsets are hours, not days; several that are due together become one reminder, that of the nearest."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.bookings.book import NewBooking, get_booking, put_booking
from app.db import Database
from tests.bookings.shelf import DAY, HOUR, book, plan, states_of
from tests.tick.ticking import outbox, tick_once

MINUTE = timedelta(minutes=1)
TWO = {"reminder_offsets": (DAY, HOUR)}


async def test_two_offsets_due_at_once_make_one_reminder_of_the_nearer(conn):
    await book(conn, "b", 30 * MINUTE, created_ago=MINUTE)

    planned = await plan(conn, DAY, HOUR)

    assert (planned.planned, planned.superseded) == (1, 1)
    assert await states_of(conn, "b") == [(HOUR, "planned", None), (DAY, "skipped", "superseded")]


async def test_two_offsets_due_one_after_the_other_make_two_reminders(services, conn):
    made = services(**TWO)
    await book(conn, "b", 2 * HOUR)

    first = await tick_once(made)
    await conn.execute("UPDATE bookings SET starts_at = starts_at - interval '90 minutes'")
    await conn.execute("UPDATE reminders SET starts_at = starts_at - interval '90 minutes'")
    second = await tick_once(made)

    assert (first["reminders"]["sent"], second["reminders"]["sent"]) == (1, 1)
    assert len(outbox(made.settings)) == 2


async def test_a_reminder_that_waited_until_a_nearer_one_is_due_is_superseded(services, conn):
    made = services(**TWO)
    await book(conn, "b", 30 * MINUTE)
    await plan(conn, DAY)

    summary = await tick_once(made)

    assert summary["reminders"]["sent"] == 1
    assert summary["reminders"]["skipped"]["superseded"] == 1
    assert await states_of(conn, "b") == [(HOUR, "sent", None), (DAY, "skipped", "superseded")]


async def test_a_farther_offset_that_is_configured_later_reminds_nobody_again(services, conn):
    await book(conn, "b", 2 * HOUR)
    await tick_once(services())

    summary = await tick_once(services(reminder_offsets=(2 * DAY,)))

    assert summary["reminders"]["sent"] == 0
    assert summary["reminders"]["skipped"]["superseded"] == 1


@pytest.mark.parametrize("starts_in", [HOUR, 47 * HOUR, 49 * HOUR], ids=str)
async def test_a_bookings_own_offsets_replace_the_configured_ones(conn, starts_in):
    await book(conn, "b", starts_in, remind_before=["48:00"])

    await plan(conn, DAY)

    expected = [(2 * DAY, "planned", None)] if starts_in < 48 * HOUR else []
    assert await states_of(conn, "b") == expected


async def test_own_offsets_collapse_to_the_nearest_as_well(conn):
    await book(conn, "b", 30 * MINUTE, remind_before=["7 days", "1 day", "01:00", "00:10"])

    await plan(conn, DAY)

    assert await states_of(conn, "b") == [
        (HOUR, "planned", None),
        (DAY, "skipped", "superseded"),
        (7 * DAY, "skipped", "superseded"),
    ]


async def test_a_day_and_twenty_four_hours_are_the_same_offset(conn):
    await book(conn, "b", HOUR, remind_before=["1 day", "24:00", "1440 minutes"])

    planned = await plan(conn, DAY)

    assert (planned.planned, planned.superseded) == (1, 0)
    assert await states_of(conn, "b") == [(DAY, "planned", None)]


async def test_an_empty_list_of_offsets_means_no_reminder(services, conn):
    await book(conn, "b", HOUR, remind_before=[])

    summary = await tick_once(services())

    assert summary["reminders"]["planned"] == 0
    assert await states_of(conn, "b") == []


@pytest.mark.parametrize("offsets", [None, (), (DAY,), (timedelta(days=30), timedelta(seconds=90))], ids=str)
async def test_the_book_keeps_own_offsets_as_they_were_given(conn, offsets):
    await put_booking(conn, NewBooking(id="b", starts_at=datetime.now(UTC) + DAY, remind_before=offsets))

    kept = await get_booking(conn, "b")

    assert kept is not None
    assert kept.remind_before == offsets


# From any day of the year, at least one of these reaches over a single change of Berlin's clocks.
REACHES = (60, 120, 180, 240, 300)


@pytest.mark.parametrize("kind", ["configured", "own"])
async def test_an_offset_is_that_many_hours_whatever_the_clocks_do_in_between(conn, kind):
    offsets = [timedelta(days=days) for days in REACHES]
    async with conn.transaction():
        await conn.execute("SET LOCAL TIME ZONE 'Europe/Berlin'")
        for offset in offsets:
            own = [f"{offset.days} days"] if kind == "own" else None
            await book(conn, f"inside {offset.days}", offset - MINUTE, remind_before=own)
            await book(conn, f"beyond {offset.days}", offset + 30 * MINUTE, remind_before=own)
        for offset in offsets:
            await plan(conn, DAY if kind == "own" else offset)
            planned = await conn.fetch(
                "SELECT booking_id FROM reminders WHERE status = 'planned' AND remind_before = $1", offset
            )

            assert f"inside {offset.days}" in {row["booking_id"] for row in planned}
            assert f"beyond {offset.days}" not in {row["booking_id"] for row in planned}


@pytest.mark.parametrize("day", [datetime(2027, 3, 28, 22, 5, tzinfo=UTC), datetime(2027, 10, 31, 23, 5, tzinfo=UTC)])
async def test_five_past_midnight_after_the_change_of_the_clocks_is_24_hours_ahead_too(conn, day):
    async with conn.transaction():
        await conn.execute("SET LOCAL TIME ZONE 'Europe/Berlin'")
        await conn.execute("INSERT INTO bookings (id, starts_at, remind_before) VALUES ('b', $1, '{1 day}')", day)

        ahead = await conn.fetchval("SELECT starts_at - lower(reminder_window(starts_at, remind_before)) FROM bookings")

    assert ahead == timedelta(hours=24)


@pytest.mark.parametrize("remind_before", [None, ["1 day"]], ids=["configured", "own"])
async def test_a_database_in_another_time_zone_plans_and_sends_the_same(services, conn, dsn, remind_before):
    database = Database(f"{dsn}{'&' if '?' in dsn else '?'}TimeZone=Europe/Berlin")
    made = replace(services(), database=database)
    await book(conn, "inside", DAY - MINUTE, remind_before=remind_before)
    await book(conn, "beyond", DAY + MINUTE, remind_before=remind_before)

    summary = await tick_once(made)

    async with database.acquire() as connection:
        assert await connection.fetchval("SHOW TimeZone") == "Europe/Berlin"
    await database.close()
    assert summary["reminders"]["sent"] == 1
    assert await states_of(conn, "inside") == [(DAY, "sent", None)]
    assert await states_of(conn, "beyond") == []
