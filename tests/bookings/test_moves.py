"""What stands in the book at send time is what counts: moved, cancelled and confirmed anew, in every order."""

from datetime import timedelta

from tests.bookings.shelf import DAY, HOUR, WEEK, book, make_due, move, plan, reminders_of, set_status, states_of
from tests.tick.ticking import outbox, tick_once


async def test_a_moved_booking_is_reminded_for_its_new_time(services, conn):
    made = services()
    await book(conn, "b", HOUR)
    await tick_once(made)
    await move(conn, "b", 5 * HOUR)

    summary = await tick_once(made)

    assert summary["reminders"]["sent"] == 1
    assert [row["status"] for row in await reminders_of(conn, "b")] == ["sent", "sent"]


async def test_a_booking_moved_out_of_the_window_waits_for_it(services, conn):
    made = services()
    await book(conn, "b", HOUR)
    await plan(conn)
    await move(conn, "b", WEEK)

    summary = await tick_once(made)

    assert summary["reminders"]["skipped"]["moved"] == 1
    assert outbox(made.settings) == []
    assert await states_of(conn, "b") == [(DAY, "skipped", "moved")]


async def test_moved_back_after_its_reminder_nothing_is_sent_twice(services, conn):
    made = services()
    await book(conn, "b", HOUR)
    await tick_once(made)
    await move(conn, "b", WEEK)
    await tick_once(made)
    await move(conn, "b", -WEEK)

    summary = await tick_once(made)

    assert summary["reminders"]["sent"] == 0
    assert len(outbox(made.settings)) == 1


async def test_moved_back_after_it_was_skipped_the_reminder_goes_out(services, conn):
    made = services()
    await book(conn, "b", HOUR)
    await plan(conn)
    await move(conn, "b", WEEK)
    await tick_once(made)
    await move(conn, "b", -WEEK)

    first, second = await tick_once(made), await tick_once(made)

    assert (first["reminders"]["sent"], second["reminders"]["sent"]) == (1, 0)
    assert await states_of(conn, "b") == [(DAY, "sent", None)]


async def test_moved_and_back_while_the_job_waits_sends_once(services, conn):
    made = services()
    await book(conn, "b", HOUR)
    await plan(conn)
    await move(conn, "b", 2 * HOUR)
    await plan(conn)
    await move(conn, "b", -2 * HOUR)

    summary = await tick_once(made)

    assert summary["reminders"]["sent"] == 1
    assert summary["reminders"]["skipped"]["moved"] == 1
    assert len(outbox(made.settings)) == 1


async def test_the_reminder_names_the_time_to_which_the_booking_was_moved(services, conn):
    made = services()
    await book(conn, "b", 3 * HOUR)
    await plan(conn)
    await move(conn, "b", timedelta(minutes=-30))
    starts = await conn.fetchval("SELECT starts_at FROM bookings")

    await tick_once(made)

    (message,) = outbox(made.settings)
    (invitation,) = message.iter_attachments()
    assert f"DTSTART:{starts:%Y%m%dT%H%M%SZ}" in str(invitation.get_content())


async def test_what_was_corrected_before_the_first_attempt_is_what_is_sent(services, conn):
    made = services()
    await book(conn, "b", HOUR, title="Haircut with Anna")
    await plan(conn)
    await conn.execute("UPDATE bookings SET title = 'Haircut with Bea', attendee_email = 'new@example.org'")

    await tick_once(made)

    (message,) = outbox(made.settings)
    assert "Bea" in str(message["Subject"])
    assert "Anna" not in message.as_string()
    assert message["To"] == "new@example.org"


async def test_a_booking_cancelled_between_planning_and_sending_is_not_reminded(services, conn):
    made = services()
    await book(conn, "b", HOUR)
    await plan(conn)
    await set_status(conn, "b", "cancelled")

    summary = await tick_once(made)

    assert summary["reminders"]["skipped"]["cancelled"] == 1
    assert outbox(made.settings) == []
    assert await states_of(conn, "b") == [(DAY, "skipped", "cancelled")]


async def test_a_booking_deleted_between_planning_and_sending_is_not_reminded(services, conn):
    made = services()
    await book(conn, "b", HOUR)
    await plan(conn)
    await conn.execute("DELETE FROM bookings")

    summary = await tick_once(made)

    assert summary["reminders"]["skipped"]["cancelled"] == 1
    assert outbox(made.settings) == []


async def test_a_booking_confirmed_anew_is_reminded_if_it_was_not(services, conn):
    made = services()
    await book(conn, "b", HOUR)
    await plan(conn)
    await set_status(conn, "b", "cancelled")
    await tick_once(made)
    await set_status(conn, "b", "confirmed")

    first, second = await tick_once(made), await tick_once(made)

    assert (first["reminders"]["sent"], second["reminders"]["sent"]) == (1, 0)
    assert len(outbox(made.settings)) == 1


async def test_a_booking_confirmed_anew_after_its_reminder_is_not_reminded_again(services, conn):
    made = services()
    await book(conn, "b", HOUR)
    await tick_once(made)
    await set_status(conn, "b", "cancelled")
    await tick_once(made)
    await set_status(conn, "b", "confirmed")

    summary = await tick_once(made)

    assert summary["reminders"]["sent"] == 0
    assert len(outbox(made.settings)) == 1


async def test_a_job_cancelled_by_hand_keeps_its_reminder_from_going_out(services, conn):
    made = services()
    await book(conn, "b", HOUR)
    await plan(conn)
    await conn.execute("UPDATE jobs SET status = 'cancelled', finished_at = now()")

    first, second = await tick_once(made), await tick_once(made)

    assert (first["reminders"]["sent"], second["reminders"]["sent"]) == (0, 0)
    assert first["reminders"]["skipped"]["cancelled"] == 1
    assert second["reminders"]["skipped"]["cancelled"] == 0
    assert await states_of(conn, "b") == [(DAY, "skipped", "cancelled by hand")]


async def test_one_of_two_attendees_who_cancels_is_not_reminded(services, conn):
    """A booking has one attendee here: two seats of one hour are two bookings."""
    made = services()
    await book(conn, "seat-1", HOUR, email="one@example.org")
    await book(conn, "seat-2", HOUR, email="two@example.org")
    await set_status(conn, "seat-2", "cancelled")

    await tick_once(made)

    assert [str(message["To"]) for message in outbox(made.settings)] == ["one@example.org"]


async def test_a_booking_that_starts_between_planning_and_sending_is_not_reminded(services, conn):
    made = services()
    await book(conn, "b", HOUR)
    await plan(conn)
    await conn.execute("UPDATE bookings SET starts_at = now() - interval '1 second', ends_at = NULL")
    await conn.execute("UPDATE reminders SET starts_at = (SELECT starts_at FROM bookings)")
    await conn.execute(
        "UPDATE jobs SET payload = jsonb_set(payload, '{starts_at}', (SELECT to_jsonb(starts_at) FROM bookings))"
    )
    await make_due(conn)

    summary = await tick_once(made)

    assert summary["reminders"]["skipped"]["started"] == 1
    assert summary["attention"] == ["reminders_missed"]
    assert outbox(made.settings) == []
