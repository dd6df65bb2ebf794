"""Through both nights on which Berlin's clocks change, half an hour at a time, on a database that lives in Berlin.

The database's clock really stands in those nights; ours is months away. What decides is the instant, not the wall.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from app.jobs import Job, Kind
from app.jobs.services import Services
from tests.evidence.clocks.faked import Clock
from tests.tick.ticking import outbox, tick_once

BERLIN = ZoneInfo("Europe/Berlin")
HALF_HOUR = timedelta(minutes=30)
# In each night Berlin's clocks change at 01:00 UTC: 3 becomes 2 in the autumn, 2 becomes 3 in the spring.
NIGHTS = {"autumn": datetime(2026, 10, 24, 23, 0, tzinfo=UTC), "spring": datetime(2027, 3, 27, 23, 0, tzinfo=UTC)}
STEPS = 10

BOOK = """
    INSERT INTO bookings (id, title, starts_at, time_zone, locale, attendee_email, remind_before, created_at)
    SELECT n::text, 'Night', $1::timestamptz + n * interval '30 minutes', 'Europe/Berlin', 'en',
        'guest' || n || '@example.com', '{1 hour}', $1::timestamptz - interval '2 days'
    FROM generate_series(0, $2::int) AS n
"""
ENQUEUE = """
    INSERT INTO jobs (kind, payload, run_at)
    SELECT 'night', jsonb_build_object('n', n), $1::timestamptz + n * interval '30 minutes'
    FROM generate_series(0, $2::int) AS n
"""
# The lease ends two hours of real time after the night's first instant, whatever the wall says.
LEASED = """
    INSERT INTO jobs (id, kind, payload, status, locked_until)
    VALUES (1000, 'night', '{"n": 1000}', 'running', $1::timestamptz + interval '2 hours')
"""
DONE = """
    SELECT array_agg((payload->>'n')::int ORDER BY id)
    FROM jobs
    WHERE status = 'done' AND kind = 'night' AND id < 1000
"""
SENT = "SELECT array_agg(booking_id::int ORDER BY starts_at) FROM reminders WHERE status = 'sent'"


async def be_done(_job: Job) -> None:
    """Do nothing, well."""


def due(first: datetime, now: datetime, *, ahead: timedelta) -> list[int]:
    """Return which of the half hours after *first* are due at *now*, *ahead* of their time."""
    return [n for n in range(STEPS + 3) if first + n * HALF_HOUR - ahead <= now]


@pytest.mark.parametrize("night", NIGHTS)
async def test_everything_happens_at_its_instant_through_the_night(
    clock: Clock, clocked: Any, clocked_services: Callable[..., Services], night: str
) -> None:
    first = NIGHTS[night]
    services = clocked_services({"night": Kind(be_done)})
    start = first + timedelta(hours=1)
    await clocked.execute(BOOK, start, STEPS + 2)
    await clocked.execute(ENQUEUE, first, STEPS + 2)
    await clocked.execute(LEASED, first)

    for step in range(STEPS):
        now = first + step * HALF_HOUR + timedelta(seconds=5)
        clock.set_to(now)
        await tick_once(services)

        assert await clocked.fetchval(DONE) == due(first, now, ahead=timedelta(0)), now
        assert await clocked.fetchval(SENT) == due(start, now, ahead=timedelta(hours=1)), now
        is_held = await clocked.fetchval("SELECT status = 'running' FROM jobs WHERE id = 1000")
        assert is_held == (now < first + timedelta(hours=2)), now

    assert await clocked.fetchval("SHOW timezone") == "Europe/Berlin"
    assert await clocked.fetchval("SELECT array_agg(DISTINCT attempts) FROM jobs WHERE status = 'done'") == [1]
    _check_what_was_written(outbox(services.settings), start)


def _check_what_was_written(messages: list[Any], start: datetime) -> None:
    """Each reminder names its own instant, and no two of them read alike: the hour that comes twice is named twice."""
    texts = {str(message["To"]): message.get_body(("plain",)).get_content() for message in messages}
    assert len(texts) == STEPS
    for n in range(STEPS):
        local = (start + n * HALF_HOUR).astimezone(BERLIN)
        offset = "CEST (UTC+02:00)" if local.utcoffset() == timedelta(hours=2) else "CET (UTC+01:00)"
        line = next(row for row in texts[f"guest{n}@example.com"].splitlines() if "When:" in row)
        assert f"{local:%H:%M} {offset}" in line, line
    subjects = [str(message["Subject"]) for message in messages]
    assert len(set(subjects)) == STEPS, subjects
