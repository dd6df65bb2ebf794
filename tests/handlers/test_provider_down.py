"""A provider that fails costs time, not reminders: retried, then dead with its reason, and never called sent."""

from app.jobs.operate import requeue
from tests.bookings.shelf import DAY, HOUR, book, book_many, make_due, reminders_of, states_of
from tests.channels.smtp_server import smtp_server
from tests.handlers.provider import BAD_REQUEST, UNAVAILABLE
from tests.tick.ticking import tick_once


async def test_a_provider_that_is_down_for_one_tick_gets_all_at_the_next_once(services, conn, provider):
    made = services(**provider.settings)
    provider.reply = UNAVAILABLE
    await book_many(conn, 20)
    down = await tick_once(made)
    provider.reply = None
    await make_due(conn)

    up, after = await tick_once(made), await tick_once(made)

    assert (down["reminders"]["retried"], down["ok"]) == (20, True)
    assert (up["reminders"]["sent"], after["reminders"]["claimed"]) == (20, 0)
    assert len(provider.recipients) == len(set(provider.recipients)) == 20


async def test_a_provider_that_fails_twice_delivers_once_at_the_third_attempt(services, conn, provider):
    made = services(**provider.settings)
    provider.replies = [UNAVAILABLE, UNAVAILABLE]
    await book(conn, "b", HOUR)

    for _ in range(3):
        await tick_once(made)
        await make_due(conn)

    job = await conn.fetchrow("SELECT status, attempts, jsonb_array_length(errors) FROM jobs")
    assert tuple(job) == ("done", 3, 2)
    assert provider.recipients == ["mali@example.org"]
    assert await states_of(conn, "b") == [(DAY, "sent", None)]


async def test_a_provider_that_always_refuses_leaves_a_dead_job_that_can_be_requeued(services, conn, provider):
    made = services(**provider.settings)
    provider.reply = BAD_REQUEST
    await book(conn, "b", HOUR)
    refused = await tick_once(made)
    states = await states_of(conn, "b")
    provider.reply = None
    await requeue(conn, (await reminders_of(conn, "b"))[0]["job_id"])

    requeued = await tick_once(made)

    assert (refused["reminders"]["failed"], refused["attention"]) == (1, ["reminders_failed"])
    assert refused["backlog"]["dead"] == 1
    assert states == [(DAY, "failed", "resend: 400 validation_error")]
    assert (requeued["reminders"]["sent"], requeued["backlog"]["dead"]) == (1, 0)
    assert await states_of(conn, "b") == [(DAY, "sent", None)]


async def test_a_provider_that_always_fails_ends_in_a_dead_letter_that_is_told_once(services, conn, provider):
    made = services(**provider.settings)
    provider.reply = UNAVAILABLE
    await book(conn, "b", HOUR)

    summaries = []
    for _ in range(20):
        summaries.append(await tick_once(made))
        await make_due(conn)

    job = await conn.fetchrow("SELECT status, attempts, last_error FROM jobs")
    assert tuple(job) == ("dead", 8, "MaybeSent: resend: 503 service_unavailable")
    assert await states_of(conn, "b") == [(DAY, "failed", "MaybeSent: resend: 503 service_unavailable")]
    assert [summary["reminders"]["failed"] for summary in summaries] == [0] * 7 + [1] + [0] * 12
    assert [summary["attention"] for summary in summaries if summary["attention"]] == [["reminders_failed"]]
    assert len(provider.requests) == 8


async def test_a_dead_letter_goes_out_under_its_old_key_when_it_is_requeued(services, conn, provider):
    made = services(**provider.settings)
    provider.reply = UNAVAILABLE
    await book(conn, "b", HOUR)
    await tick_once(made)
    await conn.execute("UPDATE jobs SET max_attempts = 2, run_at = now()")
    await tick_once(made)
    await tick_once(made)
    provider.reply = None
    await requeue(conn, (await reminders_of(conn, "b"))[0]["job_id"])

    summary = await tick_once(made)

    assert summary["reminders"]["sent"] == 1
    assert len(set(provider.keys)) == 1


async def test_a_requeued_reminder_that_fails_again_is_retried_as_before(services, conn):
    async with smtp_server({"MAIL": "451 not now"}) as server:
        made = services(email_url=f"smtp://127.0.0.1:{server.port}?tls=none", ambiguous_send="hold")
        await book(conn, "b", HOUR)
        await tick_once(made)
        await conn.execute("UPDATE jobs SET max_attempts = 2, run_at = now()")
        await tick_once(made)
        await tick_once(made)
        await requeue(conn, (await reminders_of(conn, "b"))[0]["job_id"])

        failed = await tick_once(made)
        server.replies.clear()
        await make_due(conn)
        sent = await tick_once(made)

    assert failed["reminders"]["retried"] == 1
    assert await conn.fetchval("SELECT last_error FROM jobs") == "NotSent: smtp: 451 to MAIL FROM"
    assert sent["reminders"]["sent"] == 1
    assert len(server.messages) == 1


async def test_a_job_that_always_raises_is_dead_after_its_attempts_and_left_alone(services, conn, provider):
    made = services(**provider.settings)
    provider.reply = UNAVAILABLE
    await book(conn, "b", HOUR)
    await tick_once(made)
    await conn.execute("UPDATE jobs SET max_attempts = 3")
    for _ in range(10):
        await make_due(conn)
        await tick_once(made)

    assert await conn.fetchval("SELECT attempts FROM jobs") == 3
    assert len(provider.requests) == 3
