"""A rate limit, a quota or refused credentials stop the channel, for every process, and spend no attempt."""

from datetime import timedelta

import pytest

from app.channels.suspension import resume, suspend
from app.jobs import Job, Kind, enqueue
from tests.bookings.shelf import DAY, HOUR, book, book_many, make_due, states_of
from tests.channels.http_server import answer
from tests.channels.smtp_server import smtp_server
from tests.tick.ticking import tick_once

LEFT = "SELECT extract(epoch FROM suspended_until - now())::float8 FROM channels WHERE name = 'email'"
END = "UPDATE channels SET suspended_until = now()"
REASONS = {
    "asked to wait": (answer(429, {"name": "rate_limit_exceeded"}, retry_after="120"), 120),
    "rate limit": (answer(429, {"name": "rate_limit_exceeded"}), 60),
    "daily quota": (answer(429, {"name": "daily_quota_exceeded"}), 3 * 3600),
    "monthly quota": (answer(429, {"name": "monthly_quota_exceeded"}), 24 * 3600),
    "bad key": (answer(401, {"name": "invalid_api_key"}), 900),
    "unverified domain": (answer(403, {"name": "validation_error"}), 900),
}


@pytest.mark.parametrize("reason", REASONS)
async def test_the_channel_rests_and_no_attempt_is_spent(services, conn, provider, reason):
    made = services(**provider.settings)
    provider.reply, seconds = REASONS[reason]
    await book(conn, "b", HOUR)

    summary = await tick_once(made)

    left = await conn.fetchval(LEFT)
    assert seconds - 10 < left <= seconds
    assert summary["reminders"]["released"] == 1
    assert summary["attention"] == ["channel_suspended"]
    assert tuple(await conn.fetchrow("SELECT status, attempts FROM jobs")) == ("ready", 0)
    assert await states_of(conn, "b") == [(DAY, "planned", None)]


async def test_while_the_channel_rests_nothing_is_tried_and_it_is_shown(services, conn, provider):
    made = services(**provider.settings)
    await suspend(conn, "email", 600, "quota")
    await book_many(conn, 150)

    summaries = [await tick_once(made) for _ in range(3)]

    assert provider.requests == []
    assert [summary["attention"] for summary in summaries] == [["channel_suspended"]] * 3
    assert [summary["ok"] for summary in summaries] == [False] * 3
    assert await conn.fetchval("SELECT max(attempts) FROM jobs") == 0


async def test_only_those_under_way_hear_of_a_limit_and_the_rest_wait(services, conn, provider):
    made = services(reminder_concurrency=2, **provider.settings)
    provider.reply = answer(429, {"name": "rate_limit_exceeded"}, retry_after="120")
    await book_many(conn, 30)

    summary = await tick_once(made)

    assert len(provider.requests) <= 4
    assert summary["reminders"]["released"] == 30


async def test_the_other_lane_goes_on(services, conn, provider):
    async def note(job: Job) -> None:
        """Take note."""

    made = services({"note.taken": Kind(note)}, **provider.settings)
    provider.reply = answer(401, {"name": "invalid_api_key"})
    await book(conn, "b", HOUR)
    for _ in range(5):
        await enqueue(conn, "note.taken")

    summary = await tick_once(made)

    assert summary["jobs"]["done"] == 5
    assert summary["reminders"]["released"] == 1


async def test_after_the_rest_all_go_out_once(services, conn, provider):
    made = services(**provider.settings)
    provider.replies = [answer(429, {"name": "rate_limit_exceeded"}, retry_after="120")]
    await book_many(conn, 20)
    await tick_once(made)
    await conn.execute(END)
    await make_due(conn)

    summary = await tick_once(made)

    assert summary["attention"] == []
    assert await conn.fetchval("SELECT count(*) FROM reminders WHERE status = 'sent'") == 20
    assert len(provider.recipients) == len(set(provider.recipients)) == 20


async def test_a_waiting_reminder_looks_again_within_a_quarter_of_an_hour(services, conn, provider):
    made = services(**provider.settings)
    await suspend(conn, "email", 24 * 3600, "quota of a month")
    await book(conn, "b", HOUR)

    await tick_once(made)

    wait = await conn.fetchval("SELECT run_at - now() FROM jobs")
    assert timedelta(minutes=14) < wait <= timedelta(minutes=15)


async def test_a_person_can_open_the_channel_again(conn):
    await suspend(conn, "email", 600, "quota")

    first, second = await resume(conn, "email"), await resume(conn, "email")

    assert (first, second) == (True, False)


async def test_of_two_suspensions_the_longer_holds(conn):
    await suspend(conn, "email", 600, "quota")
    await suspend(conn, "email", 60, "rate limit")

    assert await conn.fetchval(LEFT) > 590


async def test_a_booking_that_starts_while_the_channel_rests_is_shown_as_missed(services, conn, provider):
    made = services(**provider.settings)
    await suspend(conn, "email", 600, "quota")
    await book(conn, "b", HOUR)
    await tick_once(made)
    await conn.execute("UPDATE bookings SET starts_at = now() - interval '1 minute', ends_at = NULL")
    await conn.execute("UPDATE reminders SET starts_at = (SELECT starts_at FROM bookings)")
    await conn.execute("UPDATE jobs SET expires_at = (SELECT starts_at FROM bookings)")

    summary = await tick_once(made)

    assert summary["attention"] == ["reminders_missed", "channel_suspended"]


@pytest.mark.parametrize(
    "refusal", [{"AUTH": "535 5.7.8 no"}, {"GREETING": "421 too busy"}], ids=["login", "throttled"]
)
async def test_a_mail_server_that_refuses_us_rests_too(services, conn, refusal):
    async with smtp_server(refusal) as server:
        made = services(email_url=f"smtp://user:password@127.0.0.1:{server.port}?tls=none")
        await book(conn, "b", HOUR)

        summary = await tick_once(made)

    assert summary["attention"] == ["channel_suspended"]
    assert await conn.fetchval("SELECT attempts FROM jobs") == 0


async def test_a_resting_channel_under_hold_leaves_nothing_in_doubt(services, conn):
    async with smtp_server({"MAIL": "421 too busy"}) as server:
        made = services(email_url=f"smtp://127.0.0.1:{server.port}?tls=none", ambiguous_send="hold")
        await book(conn, "b", HOUR)
        await tick_once(made)
        server.replies.clear()
        await conn.execute(END)
        await make_due(conn)

        summary = await tick_once(made)

    assert summary["reminders"]["sent"] == 1
    assert len(server.messages) == 1
