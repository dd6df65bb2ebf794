"""An address that does not answer is never in the way of the tick's deadline."""

import time
from collections.abc import Awaitable, Callable
from typing import Any

from app.jobs import enqueue
from tests.alerts.conftest import OK, address, told
from tests.channels.http_server import HANG, HttpServer
from tests.operator.rows import add_job

Tick = Callable[..., Awaitable[dict[str, Any]]]


async def test_a_sink_that_hangs_leaves_the_tick_its_deadline_and_its_record(
    conn: Any, run_tick: Tick, sink: HttpServer
) -> None:
    sink.answer = HANG
    await add_job(conn, "avatar.resize", "dead")
    started = time.monotonic()

    summary = await run_tick(seconds=3)

    assert time.monotonic() - started < 4
    assert (summary["stopped_by"], summary["alerted"]) == ("empty", 0)
    assert [error["section"] for error in summary["errors"]] == ["alert"]
    assert await conn.fetchval("SELECT count(*) FROM ticks") == 1


async def test_jobs_run_while_a_sink_hangs(conn: Any, run_tick: Tick, sink: HttpServer) -> None:
    sink.answer = HANG
    await add_job(conn, "avatar.resize", "dead")
    for _ in range(50):
        await enqueue(conn, "note.read")

    summary = await run_tick(seconds=11, alert_urls=f"{address(sink)}?rto=1")

    assert summary["jobs"]["done"] == 50
    assert summary["duration_ms"] < 9500


async def test_with_no_time_left_all_is_left_to_the_next_tick(conn: Any, run_tick: Tick, sink: HttpServer) -> None:
    await add_job(conn, "avatar.resize", "dead")
    short = await run_tick(seconds=0.8)

    summary = await run_tick()

    assert (short["alerted"], short["errors"]) == (0, [])
    assert (summary["alerted"], len(told(sink))) == (1, 1)


async def test_a_tick_that_died_while_it_told_leaves_its_claim_for_a_minute(
    conn: Any, run_tick: Tick, sink: HttpServer
) -> None:
    sink.answer, url = HANG, f"{address(sink)}?rto=1"
    await add_job(conn, "avatar.resize", "dead")
    await run_tick(alert_urls=url)
    sink.answer = OK
    sink.requests.clear()
    await conn.execute("UPDATE alerts SET claimed_until = now() + interval '1 minute'")
    claimed = await run_tick(alert_urls=url)
    await conn.execute("UPDATE alerts SET claimed_until = now() - interval '1 second'")

    freed = await run_tick(alert_urls=url)

    assert (claimed["alerted"], claimed["round_trips"]) == (0, 3)
    assert (freed["alerted"], len(told(sink))) == (1, 1)
