"""Every page within 300 ms however much lies in the tables: lists go by key, and counts stop.

The short form always runs, with fewer rows; the long one, with 1,000,000 done, 100,000 due and 10,000 dead, is nightly.
"""

import statistics
import time
from typing import Any

import pytest

from tests.admin import world
from tests.admin.conftest import Visitor

LIMIT_SECONDS = 0.3
ROUNDS = 5

FILL_JOBS = """
    INSERT INTO jobs (kind, payload, status, attempts, run_at, created_at, started_at, finished_at, last_error, errors)
    SELECT 'kind.' || n % 20, jsonb_build_object('user_id', n, 'text', repeat('x', 100)), $2,
        CASE $2 WHEN 'ready' THEN 0 ELSE 1 END,
        now() - n % 500 * interval '1 second', now() - interval '1 day', now() - interval '1 hour',
        CASE WHEN $2 <> 'ready' THEN now() - n % 5000 * interval '1 minute' / 5000 END,
        CASE WHEN $2 = 'dead' THEN 'TimeoutError: it ran longer than ' || n % 100 || ' s' END, '[]'
    FROM generate_series(1, $1::int) AS n
"""

FILL_TICKS = """
    INSERT INTO ticks (id, started_at, finished_at, source, summary)
    SELECT gen_random_uuid(), now() - n * interval '1 minute', now() - n * interval '1 minute', 'worker', ticks.summary
    FROM generate_series(1, $1::int) AS n, (SELECT summary FROM ticks LIMIT 1) AS ticks
"""

FILL_BOOKINGS = """
    INSERT INTO bookings (id, title, starts_at, attendee_email)
    SELECT 'n-' || n, 'Haircut', now() + (n - $1::int / 2) * interval '1 minute', 'guest@example.org'
    FROM generate_series(1, $1::int) AS n
"""

FILL_REMINDERS = """
    INSERT INTO reminders (booking_id, starts_at, remind_before, channel, status, reason, sent_at, job_id)
    SELECT id, starts_at, interval '24 hours', 'email', way.status,
        CASE WHEN way.status <> 'sent' THEN 'started' END, CASE WHEN way.status = 'sent' THEN now() END, 1
    FROM (SELECT id, starts_at, row_number() OVER () AS n FROM bookings WHERE id LIKE 'n-%') AS booking
    CROSS JOIN LATERAL (
        SELECT CASE WHEN n % 20 = 0 THEN 'failed' WHEN n % 20 = 1 THEN 'uncertain' WHEN n % 20 = 2 THEN 'skipped'
            ELSE 'sent' END AS status
    ) AS way
"""

PAGES = (
    "/admin",
    "/admin/pulse",
    "/admin/jobs",
    "/admin/jobs?status=ready",
    "/admin/jobs?status=dead",
    "/admin/jobs?status=done",
    "/admin/jobs?status=running",
    "/admin/jobs?kind=kind.7",
    "/admin/jobs?status=done&kind=nothing",
    "/admin/jobs?queue=nothing",
    "/admin/reminders",
    "/admin/reminders/uncertain",
    "/admin/reminders/failed",
    "/admin/reminders/sent",
    "/admin/reminders/skipped",
    "/admin/ticks",
    "/admin/schedule",
    "/admin/channels",
    "/admin/bookings/b-1",
)
FORMS = (
    ("/admin/jobs", {"status": "dead", "error": "longer than 77"}),
    ("/admin/jobs", {"status": "", "error": "nothing at all"}),
    ("/admin/bulk/requeue", {"status": "dead"}),
    ("/admin/bulk/requeue", {"status": "dead", "error": "nothing"}),
    ("/admin/bulk/cancel", {"status": "ready", "kind": "kind.7"}),
)


async def fill(conn: Any, *, done: int, due: int, dead: int, ticks: int, bookings: int) -> None:
    await world.fill(conn)
    for number, status in ((done, "done"), (due, "ready"), (dead, "dead")):
        await conn.execute(FILL_JOBS, number, status, timeout=600)
    await conn.execute(FILL_TICKS, ticks)
    await conn.execute(FILL_BOOKINGS, bookings)
    await conn.execute(FILL_REMINDERS)
    for table in ("jobs", "ticks", "bookings", "reminders"):
        await conn.execute(f"VACUUM ANALYZE {table}", timeout=600)


async def measure(visitor: Visitor) -> dict[str, float]:
    """Return the best time of each page in seconds: this machine has other things to do as well."""
    found: dict[str, float] = {}
    token = await visitor.form_token()
    for path in PAGES:
        found[path] = min([await timed(visitor, path) for _ in range(ROUNDS)])
    for path, fields in FORMS:
        name = f"POST {path} {fields}"
        found[name] = min([await timed(visitor, path, form_token=token, **fields) for _ in range(ROUNDS)])
    return found


async def timed(visitor: Visitor, path: str, **fields: str) -> float:
    started = time.perf_counter()
    answer = await (visitor.post(path, **fields) if fields else visitor.get(path))
    took = time.perf_counter() - started
    assert answer.status_code == 200, path
    return took


def report(found: dict[str, float]) -> None:
    lines = [f"{seconds * 1000:7.1f} ms  {path}" for path, seconds in sorted(found.items(), key=lambda item: -item[1])]
    print("\n".join([*lines, f"{statistics.median(found.values()) * 1000:7.1f} ms  median"]))  # noqa: T201 - the figures


async def test_every_page_is_quick_with_many_rows(visitor: Visitor, conn: Any) -> None:
    await fill(conn, done=20_000, due=5_000, dead=2_000, ticks=2_000, bookings=2_000)

    found = await measure(visitor)

    assert {path: seconds for path, seconds in found.items() if seconds > LIMIT_SECONDS} == {}


@pytest.mark.nightly
async def test_every_page_is_quick_with_a_million_rows(visitor: Visitor, conn: Any) -> None:
    await fill(conn, done=1_000_000, due=100_000, dead=10_000, ticks=10_080, bookings=200_000)

    found = await measure(visitor)

    report(found)
    assert {path: seconds for path, seconds in found.items() if seconds > LIMIT_SECONDS} == {}
