"""Each thing is told once, within the tick that saw it, and never lost while an address does not answer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from app.jobs import enqueue
from app.jobs.operate import requeue
from tests.alerts.conftest import OK, address, told
from tests.channels.http_server import DROP, HttpServer, answer, http_server
from tests.operator.rows import add_job

Tick = Callable[..., Awaitable[dict[str, Any]]]
EVERY_TOPIC = (
    "Dormouse: 7 things to look at",
    "2 dead jobs: avatar.resize (2)",
    "1 failed reminder: booking.reminder",
    "1 reminder that may have been sent: booking.reminder",
    "1 booking that started unreminded: email",
    "1 suspended channel: email",
    "1 kind that no build here knows: nobody.knows",
    "https://jobs.example.com/admin",
)
DIE = "INSERT INTO jobs (kind, status, finished_at) SELECT 'k' || n % 7, 'dead', now() FROM generate_series(1, $1) AS n"


async def test_a_dead_job_is_told_within_the_tick_that_killed_it(conn: Any, run_tick: Tick, sink: HttpServer) -> None:
    await enqueue(conn, "note.taken")

    summary = await run_tick()

    assert told(sink) == ["Dormouse: 1 thing to look at\n1 dead job: note.taken\nhttps://jobs.example.com/admin"]
    assert (summary["jobs"]["dead"], summary["alerted"], summary["errors"]) == (1, 1, [])
    assert await conn.fetchval("SELECT (summary ->> 'alerted')::int FROM ticks") == 1


async def test_what_was_told_is_not_told_again(conn: Any, run_tick: Tick, sink: HttpServer) -> None:
    await enqueue(conn, "note.taken")
    await run_tick()

    again = await run_tick()

    assert len(told(sink)) == 1
    assert (again["alerted"], again["round_trips"]) == (0, 3)


@pytest.mark.parametrize("failure", [answer(500), answer(403), DROP, b"no HTTP\r\n\r\n"])
async def test_a_sink_that_is_down_for_three_ticks_is_told_once_when_it_is_back(
    conn: Any, run_tick: Tick, sink: HttpServer, failure: bytes
) -> None:
    await enqueue(conn, "note.taken")
    sink.answer = failure
    down = [await run_tick() for _ in range(3)]
    sink.requests.clear()
    sink.answer = OK

    back = [await run_tick() for _ in range(2)]

    assert [len(summary["errors"]) for summary in down] == [1, 1, 1]
    assert [summary["alerted"] for summary in down + back] == [0, 0, 0, 1, 0]
    assert len(told(sink)) == 1


async def test_one_address_that_is_down_makes_no_other_hear_twice(conn: Any, run_tick: Tick, sink: HttpServer) -> None:
    async with http_server(answer(500)) as down:
        both = f"{address(sink)}, {address(down)}"
        await enqueue(conn, "note.taken")
        first = await run_tick(alert_urls=both)
        down.answer = OK
        down.requests.clear()

        await run_tick(alert_urls=both)
        await run_tick(alert_urls=both)

        assert (len(told(sink)), len(told(down))) == (1, 1)
        assert [error["section"] for error in first["errors"]] == ["alert"]
        assert first["alerted"] == 1


async def test_a_job_that_dies_again_is_told_again(conn: Any, run_tick: Tick, sink: HttpServer) -> None:
    job = await enqueue(conn, "note.taken")
    await run_tick()
    await requeue(conn, job.id)

    await run_tick()

    assert len(told(sink)) == 2


async def test_every_topic_has_its_line_and_no_line_a_person(conn: Any, run_tick: Tick, sink: HttpServer) -> None:
    for _ in range(2):
        await add_job(
            conn, "avatar.resize", "dead", last_error="person@example.com", payload='{"email": "person@example.com"}'
        )
    await add_job(conn, "booking.reminder", "dead", queue="reminders", last_error="refused")
    await add_job(conn, "booking.reminder", "dead", queue="reminders", last_error="uncertain: the answer was lost")
    await add_job(conn, "nobody.knows")
    await conn.execute(
        "INSERT INTO channels (name, suspended_until, reason) VALUES ('email', now() + interval '1 h', 'x')"
    )
    await conn.execute(
        """
        INSERT INTO reminders (booking_id, starts_at, remind_before, channel, status, reason)
        VALUES ('person@example.com', now() - interval '1 h', '1 day', 'email', 'skipped', 'started')
        """
    )

    await run_tick()

    assert told(sink) == ["\n".join(EVERY_TOPIC)]


async def test_what_stays_as_it_is_is_told_once(conn: Any, run_tick: Tick, sink: HttpServer) -> None:
    await add_job(conn, "nobody.knows")
    await conn.execute("INSERT INTO channels (name, suspended_until) VALUES ('email', now() + interval '1 h')")

    summaries = [await run_tick() for _ in range(3)]

    assert len(told(sink)) == 1
    assert [summary["alerted"] for summary in summaries] == [2, 0, 0]


async def test_a_suspension_that_goes_on_is_one_spell_and_a_later_one_is_news(
    conn: Any, run_tick: Tick, sink: HttpServer
) -> None:
    suspend = "UPDATE channels SET suspended_until = now() + interval '10 minutes'"
    await conn.execute("INSERT INTO channels (name, suspended_until) VALUES ('email', now() + interval '1 minute')")
    await run_tick()
    await conn.execute(suspend)
    await run_tick()
    told_in_the_spell = len(told(sink))
    await conn.execute("UPDATE channels SET suspended_until = NULL, alerted_until = now() - interval '3 h'")
    await conn.execute(suspend)

    await run_tick()

    assert (told_in_the_spell, len(told(sink))) == (1, 2)


async def test_a_kind_that_was_known_for_a_week_is_news_when_it_is_strange_again(
    conn: Any, run_tick: Tick, sink: HttpServer
) -> None:
    await add_job(conn, "nobody.knows")
    await run_tick()
    await conn.execute("UPDATE alerted_kinds SET seen_at = now() - interval '2 days'")
    await run_tick()
    told_in_the_week = len(told(sink))
    await conn.execute("UPDATE alerted_kinds SET seen_at = now() - interval '8 days'")

    await run_tick()

    assert (told_in_the_week, len(told(sink))) == (1, 2)


async def test_ten_ticks_at_once_tell_each_thing_once(conn: Any, run_tick: Tick, sink: HttpServer) -> None:
    for _ in range(20):
        await add_job(conn, "avatar.resize", "dead")

    summaries = await asyncio.gather(*(run_tick() for _ in range(10)))

    counts = [int(text.splitlines()[1].split()[0]) for text in told(sink)]
    assert sum(counts) == 20
    assert sum(summary["alerted"] for summary in summaries) == 20


async def test_a_thousand_dead_jobs_are_one_message(conn: Any, run_tick: Tick, sink: HttpServer) -> None:
    await conn.execute(DIE, 1000)

    await run_tick()

    (text,) = told(sink)
    assert "1000 dead jobs: " in text
    assert "and 2 more" in text


async def test_what_happened_before_there_was_an_address_is_told_to_the_first_one(
    conn: Any, run_tick: Tick, sink: HttpServer
) -> None:
    await enqueue(conn, "note.taken")
    silent = await run_tick(alert_urls=None)

    summary = await run_tick()

    assert (silent["alerted"], summary["alerted"], len(told(sink))) == (0, 1, 1)


async def test_no_address_costs_nothing(conn: Any, run_tick: Tick, sink: HttpServer) -> None:
    await enqueue(conn, "note.taken")
    await run_tick(alert_urls=None)

    empty = await run_tick(alert_urls=None)

    assert empty["round_trips"] == 3
    assert await conn.fetchval("SELECT count(*) FROM alerts") == 0
    assert told(sink) == []


async def test_the_ledger_holds_no_address_and_forgets_after_thirty_days(
    conn: Any, run_tick: Tick, sink: HttpServer
) -> None:
    await enqueue(conn, "note.taken")
    await run_tick()
    sinks = [row["sink"] for row in await conn.fetch("SELECT sink FROM alerts")]
    await conn.execute("UPDATE alerts SET created_at = now() - interval '31 days'")
    await enqueue(conn, "note.taken")

    await run_tick()

    assert all(len(name) == 16 and "127" not in name for name in sinks)
    assert await conn.fetchval("SELECT count(*) FROM alerts") == 1
