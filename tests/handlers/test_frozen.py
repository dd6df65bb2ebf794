"""A message is rendered once, at the first attempt: each retry sends the same bytes under the same key."""

from tests.bookings.shelf import HOUR, WEEK, book, make_due, move, reminders_of
from tests.handlers.provider import UNAVAILABLE
from tests.tick.ticking import tick_once


async def test_every_attempt_sends_the_same_bytes_under_the_same_key(services, conn, provider):
    made = services(**provider.settings)
    provider.replies = [UNAVAILABLE, UNAVAILABLE]
    await book(conn, "b", HOUR, title="Haircut with Anna")

    await tick_once(made)
    await conn.execute("UPDATE bookings SET title = 'Haircut with Bea', attendee_name = 'Somchai'")
    await make_due(conn)
    await tick_once(made)
    await make_due(conn)
    last = await tick_once(made)

    assert len({request.body for request in provider.requests}) == 1
    assert len(set(provider.keys)) == 1
    assert len(provider.requests) == 3
    assert last["reminders"]["sent"] == 1
    assert provider.recipients == ["mali@example.org"]


async def test_what_was_sent_stays_on_record_with_the_providers_id(services, conn, provider):
    await book(conn, "b", HOUR)

    await tick_once(services(**provider.settings))

    (row,) = await reminders_of(conn, "b")
    assert row["provider_id"] == f"id-of-{row['idempotency_key']}"
    assert provider.keys == [row["idempotency_key"]]
    assert row["sent_at"] is not None
    assert provider.requests[0].json["subject"] in row["rendered"]


async def test_a_reminder_that_is_owed_anew_is_rendered_anew_under_a_new_key(services, conn, provider):
    made = services(**provider.settings)
    provider.replies = [UNAVAILABLE]
    await book(conn, "b", HOUR, title="Haircut with Anna")
    await tick_once(made)
    await move(conn, "b", WEEK)
    await make_due(conn)
    await tick_once(made)
    await move(conn, "b", -WEEK)
    await conn.execute("UPDATE bookings SET title = 'Haircut with Bea'")

    await tick_once(made)

    first, second = provider.requests
    assert "Bea" in second.json["subject"]
    assert first.headers["idempotency-key"] != second.headers["idempotency-key"]


async def test_two_reminders_never_share_a_key(services, conn, provider):
    made = services(**provider.settings)
    await book(conn, "a", HOUR)
    await book(conn, "b", HOUR)

    await tick_once(made)

    assert len(set(provider.keys)) == 2
