"""One bad address is failed at once, with a reason, and stops no other."""

import pytest

from app.jobs.operate import requeue
from tests.bookings.shelf import DAY, HOUR, book, book_many, reminders_of, states_of
from tests.handlers.provider import REFUSED
from tests.tick.ticking import outbox, tick_once

BAD = {
    "null": None,
    "empty": "",
    "blank": " ",
    "word": "nobody",
    "space": "a b@example.com",
    "two": "a@example.com, b@example.com",
    "foreign": "用户@例え.jp",
    "long": "a" * 400 + "@example.com",
}


async def test_eight_bad_addresses_do_not_hold_up_95_good_ones(services, conn):
    made = services(tick_reminders=200, reminder_concurrency=10)
    await book_many(conn, 95)
    for name, address in BAD.items():
        await book(conn, name, HOUR, email=address)

    summary = await tick_once(made)

    assert summary["reminders"]["sent"] == 95
    assert summary["reminders"]["failed"] == 8
    assert summary["attention"] == ["reminders_failed"]
    assert len(outbox(made.settings)) == 95
    for name in BAD:
        assert await states_of(conn, name) == [(DAY, "failed", "invalid_recipient")]


async def test_a_bad_address_is_tried_once_and_stays_to_be_seen(services, conn):
    made = services()
    await book(conn, "b", HOUR, email=None)

    summaries = [await tick_once(made) for _ in range(20)]

    job = await conn.fetchrow("SELECT status, attempts, last_error FROM jobs")
    assert tuple(job) == ("dead", 1, "invalid_recipient")
    assert sum(summary["reminders"]["failed"] for summary in summaries) == 1
    assert [summary["backlog"]["dead"] for summary in summaries] == [1] * 20


async def test_three_attendees_of_whom_the_provider_refuses_one_are_each_on_record(services, conn, provider):
    """A booking has one attendee here: three attendees of one hour are three bookings."""
    made = services(**provider.settings)
    provider.replies_to["b@example.org"] = REFUSED
    for name in ("a", "b", "c"):
        await book(conn, name, HOUR, email=f"{name}@example.org")

    await tick_once(made)
    await tick_once(made)

    assert provider.recipients == ["a@example.org", "c@example.org"]
    assert [await states_of(conn, name) for name in ("a", "b", "c")] == [
        [(DAY, "sent", None)],
        [(DAY, "failed", "resend: 422 validation_error")],
        [(DAY, "sent", None)],
    ]
    assert len(provider.requests) == 3


@pytest.mark.parametrize("refusal", ["ours", "the provider's"])
async def test_an_address_that_was_corrected_gets_the_reminder_when_the_job_is_requeued(
    services, conn, provider, refusal
):
    made = services(**provider.settings)
    provider.replies_to["wrong@example.org"] = REFUSED
    await book(conn, "b", HOUR, email="nobody" if refusal == "ours" else "wrong@example.org")
    await tick_once(made)
    await conn.execute("UPDATE bookings SET attendee_email = 'right@example.org'")
    await requeue(conn, (await reminders_of(conn, "b"))[0]["job_id"])

    summary = await tick_once(made)

    assert summary["reminders"]["sent"] == 1
    assert provider.recipients == ["right@example.org"]
    assert len(set(provider.keys)) == len(provider.keys)
    assert await states_of(conn, "b") == [(DAY, "sent", None)]


async def test_an_error_text_repeats_no_address(services, conn, provider):
    made = services(**provider.settings)
    provider.reply = REFUSED
    await book(conn, "b", HOUR, email="secretly@example.org")

    summary = await tick_once(made)

    errors = await conn.fetchval("SELECT last_error || errors::text FROM jobs")
    assert "secretly" not in errors + str(summary)
