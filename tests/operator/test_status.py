"""GET /api/cron/status: any monitor learns whether the schedule holds, by `ok` or by the status code."""

from typing import Any

import httpx
import pytest

from tests.operator.rows import add_job, add_tick

STATUS = "/api/cron/status"


async def test_before_the_first_tick_nothing_is_ok(desk: httpx.AsyncClient) -> None:
    answer = await desk.get(STATUS)

    assert answer.status_code == 200
    assert (answer.json()["ok"], answer.json()["problems"]) == (False, ["no_tick"])
    assert answer.json()["last_tick_age_seconds"] is None


async def test_it_tells_age_gaps_backlog_and_what_is_to_come(desk: httpx.AsyncClient, conn: Any) -> None:
    for minute in range(20):
        await add_tick(conn, 900 * minute + 60)
    await add_tick(conn, 8 * 86_400)
    await add_job(conn, run_at="now", status="dead")
    await conn.execute("INSERT INTO jobs (kind, run_at) VALUES ('k', now() - interval '2 minutes')")
    await conn.execute(
        """
        INSERT INTO bookings (id, starts_at, remind_before)
        VALUES ('soon', now() + interval '1 h', NULL), ('later', now() + interval '3 h', NULL),
            ('silent', now() + interval '1 h', '{}'), ('told', now() + interval '1 h', NULL)
        """
    )
    await conn.execute(
        """
        INSERT INTO reminders (booking_id, starts_at, remind_before, channel, status, sent_at)
        SELECT id, starts_at, '24 h', 'email', 'sent', now() FROM bookings WHERE id = 'told'
        """
    )

    body = (await desk.get(STATUS)).json()

    assert body["ok"] is True
    assert body["last_tick_age_seconds"] == pytest.approx(60, abs=5)
    assert body["tick_gap_p95_seconds"] == pytest.approx(900, abs=1)
    assert body["oldest_due_age_seconds"] == pytest.approx(120, abs=5)
    assert (body["ticks_7_days"], body["reminders_due_soon"], body["jobs_dead"]) == (20, 1, 1)


@pytest.mark.parametrize(("age", "code", "is_ok"), [(100, 200, True), (400, 503, False), (4000, 503, False)])
async def test_a_monitor_that_knows_status_codes_alone_names_an_age(
    desk: httpx.AsyncClient, conn: Any, age: float, code: int, is_ok: bool
) -> None:
    await add_tick(conn, age)

    answers = [await desk.request(method, f"{STATUS}?max_age_seconds=300") for method in ("GET", "HEAD")]

    assert [answer.status_code for answer in answers] == [code, code]
    assert answers[0].json()["ok"] is is_ok


async def test_what_is_wrong_is_named_and_the_answer_is_still_200(desk: httpx.AsyncClient, conn: Any) -> None:
    await add_tick(conn, 5000)
    await conn.execute("INSERT INTO jobs (kind, run_at) VALUES ('k', now() - interval '2 hours')")
    await conn.execute("INSERT INTO channels (name, suspended_until) VALUES ('email', now() + interval '1 h')")

    answer = await desk.get(STATUS)

    assert answer.status_code == 200
    assert answer.json()["problems"] == ["tick_late", "due_late", "channel_suspended"]
    assert answer.json()["channels_suspended"] == ["email"]


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "x", "1e12"])
async def test_an_age_that_is_none_gets_422(desk: httpx.AsyncClient, value: str) -> None:
    answer = await desk.get(f"{STATUS}?max_age_seconds={value}")

    assert answer.status_code == 422


async def test_a_week_of_a_worker_and_many_jobs_are_told_in_under_300_ms(desk: httpx.AsyncClient, conn: Any) -> None:
    await conn.execute(
        """
        INSERT INTO ticks (id, started_at, finished_at, source, summary)
        SELECT gen_random_uuid(), now() - n * interval '15 s', now(), 'worker', '{"errors": []}'
        FROM generate_series(1, 40000) AS n
        """
    )
    await conn.execute("INSERT INTO jobs (kind) SELECT 'k' FROM generate_series(1, 20000)")
    await conn.execute("VACUUM ANALYZE")

    took = [(await desk.get(STATUS)).elapsed.total_seconds() for _ in range(3)]

    assert min(took) < 0.3
