"""When a tick comes decides nothing but how late: a scheduler may be late, absent for hours, or come twice."""

import pytest

from tests.bookings.shelf import DAY, HOUR, book, book_many, states_of
from tests.tick.ticking import outbox, recipients, tick_once

AGE = "UPDATE ticks SET started_at = started_at - $1::interval, finished_at = finished_at - $1::interval"


async def test_after_six_hours_without_a_tick_all_that_is_still_ahead_goes_out(services, conn):
    made = services()
    await tick_once(made)
    await conn.execute(AGE, 6 * HOUR)
    for hours in (1, 5, 19, 23):
        await book(conn, f"in {hours}", hours * HOUR, email=f"in-{hours}@example.org")

    first, second = await tick_once(made), await tick_once(made)

    assert (first["reminders"]["sent"], second["reminders"]["sent"]) == (4, 0)
    assert len(recipients(made.settings)) == 4
    assert first["lateness_seconds"]["max"] == pytest.approx(23 * 3600, abs=10)
    assert set(first["warnings"]) == {"late", "tick_gap"}


async def test_two_ticks_after_a_gap_of_twelve_hours_send_once_and_the_second_has_nothing_to_do(services, conn):
    made = services()
    await tick_once(made)
    await conn.execute(AGE, 12 * HOUR)
    await book_many(conn, 30)

    first, second = await tick_once(made), await tick_once(made)

    assert first["tick_gap_seconds"] == pytest.approx(12 * 3600, abs=10)
    assert (first["reminders"]["sent"], second["reminders"]["claimed"]) == (30, 0)
    assert second["round_trips"] == 3


async def test_the_offset_alone_decides_whatever_the_ticks_distances(services, conn):
    made = services()
    await book(conn, "b", DAY + HOUR)
    sent = []
    for minutes in (7, 51, 163, 400):
        await conn.execute("UPDATE bookings SET starts_at = starts_at - $1 * interval '1 minute'", minutes)
        await conn.execute("UPDATE reminders SET starts_at = (SELECT starts_at FROM bookings)")
        sent.append((await tick_once(made))["reminders"]["sent"])

    assert sent == [0, 0, 1, 0]


async def test_a_day_without_any_tick_sends_what_is_ahead_and_notes_what_is_past(services, conn):
    made = services()
    await tick_once(made)
    await conn.execute(AGE, 26 * HOUR)
    await book(conn, "past", -2 * HOUR)
    await book(conn, "ahead", 2 * HOUR)

    summary = await tick_once(made)

    assert (summary["reminders"]["sent"], summary["attention"]) == (1, ["reminders_missed"])
    assert await states_of(conn, "past") == [(DAY, "skipped", "started")]


async def test_a_copy_of_production_without_a_channel_of_its_own_mails_nobody(services, conn):
    made = services()
    await book(conn, "b", HOUR)

    summary = await tick_once(made)

    assert made.settings.email_url is None
    assert summary["reminders"]["sent"] == 1
    assert [str(message["To"]) for message in outbox(made.settings)] == ["mali@example.org"]
