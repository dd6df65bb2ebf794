"""An answer that was lost after the final dot: AMBIGUOUS_SEND sends again, or holds the reminder for a person."""

from app.jobs.operate import requeue
from tests.bookings.shelf import DAY, HOUR, book, make_due, reminders_of, states_of
from tests.channels.smtp_server import DROP, HANG, smtp_server
from tests.tick.ticking import tick_once


def mail_to(server, ambiguous_send: str):
    """The settings that send mail to *server*."""
    return {"email_url": f"smtp://127.0.0.1:{server.port}?tls=none", "ambiguous_send": ambiguous_send}


async def test_retry_sends_again_what_may_have_been_sent(services, conn):
    async with smtp_server({"DOT": DROP}) as server:
        made = services(**mail_to(server, "retry"))
        await book(conn, "b", HOUR)
        first = await tick_once(made)
        server.replies.clear()
        await make_due(conn)

        second = await tick_once(made)

    assert (first["reminders"]["retried"], second["reminders"]["sent"]) == (1, 1)
    assert len(server.messages) == 2
    assert server.messages[0] == server.messages[1]


async def test_hold_keeps_it_as_uncertain_for_a_person(services, conn):
    async with smtp_server({"DOT": DROP}) as server:
        made = services(**mail_to(server, "hold"))
        await book(conn, "b", HOUR)
        first = await tick_once(made)
        server.replies.clear()
        await make_due(conn)

        second = await tick_once(made)

    (state,) = await states_of(conn, "b")
    assert first["reminders"]["uncertain"] == 1
    assert first["reminders"]["failed"] == 0
    assert first["attention"] == ["reminders_failed"]
    assert (second["reminders"]["claimed"], second["attention"]) == (0, [])
    assert state[1] == "uncertain"
    assert (await conn.fetchval("SELECT last_error FROM jobs")).startswith("uncertain: smtp: no answer")
    assert len(server.messages) == 1


async def test_an_uncertain_reminder_that_a_person_requeues_goes_out(services, conn):
    async with smtp_server({"DOT": DROP}) as server:
        made = services(**mail_to(server, "hold"))
        await book(conn, "b", HOUR)
        await tick_once(made)
        server.replies.clear()
        await requeue(conn, (await reminders_of(conn, "b"))[0]["job_id"])

        summary = await tick_once(made)

    assert summary["reminders"]["sent"] == 1
    assert await states_of(conn, "b") == [(DAY, "sent", None)]
    assert server.messages[0] == server.messages[1]


async def test_an_uncertain_reminder_that_is_in_doubt_again_is_held_again(services, conn):
    async with smtp_server({"DOT": DROP}) as server:
        made = services(**mail_to(server, "hold"))
        await book(conn, "b", HOUR)
        await tick_once(made)
        await requeue(conn, (await reminders_of(conn, "b"))[0]["job_id"])

        summary = await tick_once(made)

    assert summary["reminders"]["uncertain"] == 1
    assert (await states_of(conn, "b"))[0][1] == "uncertain"


async def test_a_server_that_never_answers_the_dot_is_in_doubt_as_well(services, conn):
    async with smtp_server({"DOT": HANG}) as server:
        made = services(tick_budget_seconds=2, **mail_to(server, "hold"))
        await book(conn, "b", HOUR)

        summary = await tick_once(made)

    assert summary["reminders"]["uncertain"] == 1
    assert summary["errors"] == []


async def test_what_surely_did_not_leave_is_tried_again_under_hold(services, conn):
    async with smtp_server({"RCPT": DROP}) as server:
        made = services(**mail_to(server, "hold"))
        await book(conn, "b", HOUR)
        first = await tick_once(made)
        server.replies.clear()
        await make_due(conn)

        second = await tick_once(made)

    assert (first["reminders"]["retried"], second["reminders"]["sent"]) == (1, 1)
    assert len(server.messages) == 1


async def test_a_lost_answer_of_a_provider_that_honours_keys_is_no_doubt(services, conn, provider):
    made = services(ambiguous_send="hold", **provider.settings)
    provider.replies = [b""]
    await book(conn, "b", HOUR)
    first = await tick_once(made)
    await make_due(conn)

    second = await tick_once(made)

    assert (first["reminders"]["retried"], second["reminders"]["sent"]) == (1, 1)
    assert len(set(provider.keys)) == 1
