"""Bookings put on the shelf by plain SQL, as another program would, and what became of their reminders.

Starts are given as a distance from now, by the database's clock.
"""

from datetime import timedelta
from typing import Any

from app.bookings import reminders
from app.bookings.reminders import Planned
from app.db import Connection

HOUR = timedelta(hours=1)
DAY = timedelta(hours=24)
WEEK = timedelta(days=7)

BOOK = """
    INSERT INTO bookings (id, title, starts_at, ends_at, status, attendee_name, attendee_email, time_zone, locale,
        remind_before, created_at)
    SELECT $1, $2, start.at, start.at + interval '1 hour', $4, 'Mali', $5, 'UTC', 'en', $6::text[]::interval[],
        now() - $7::interval
    FROM (SELECT now() + make_interval(secs => $3) AS at) AS start
"""


async def book(
    conn: Connection,
    booking_id: str,
    starts_in: timedelta,
    *,
    title: str = "Haircut",
    status: str = "confirmed",
    email: str | None = "mali@example.org",
    remind_before: list[str] | None = None,
    created_ago: timedelta = WEEK,
) -> None:
    """Reserve a time *starts_in* from now."""
    await conn.execute(BOOK, booking_id, title, starts_in.total_seconds(), status, email, remind_before, created_ago)


BOOK_MANY = """
    INSERT INTO bookings (id, title, starts_at, attendee_email, created_at)
    SELECT 'b' || n, 'Haircut', now() + $2::interval + n * interval '1 second', 'guest' || n || '@example.org',
        now() - interval '7 days'
    FROM generate_series(1, $1::int) AS n
"""


async def book_many(conn: Connection, count: int, starts_in: timedelta = HOUR) -> None:
    """Reserve *count* times, b1 to b*count*, a second apart."""
    await conn.execute(BOOK_MANY, count, starts_in)


MOVE = "UPDATE bookings SET starts_at = starts_at + $2::interval, ends_at = ends_at + $2::interval WHERE id = $1"


async def move(conn: Connection, booking_id: str, by: timedelta) -> None:
    """Move a booking *by* so much."""
    await conn.execute(MOVE, booking_id, by)


SET_STATUS = "UPDATE bookings SET status = $2 WHERE id = $1"


async def set_status(conn: Connection, booking_id: str, status: str) -> None:
    """Cancel a booking, or confirm it anew."""
    await conn.execute(SET_STATUS, booking_id, status)


REMINDERS_OF = """
    SELECT booking_id, starts_at, remind_before, channel, job_id, status, reason, idempotency_key, rendered::text,
        created_at, sent_at, provider_id
    FROM reminders
    WHERE booking_id = $1
    ORDER BY starts_at, remind_before
"""


async def reminders_of(conn: Connection, booking_id: str) -> list[Any]:
    """Return the records of a booking's reminders, nearest offset first."""
    return await conn.fetch(REMINDERS_OF, booking_id)


async def states_of(conn: Connection, booking_id: str) -> list[tuple[timedelta, str, str | None]]:
    """Return (offset, status, reason) of a booking's reminders, nearest offset first."""
    return [(row["remind_before"], row["status"], row["reason"]) for row in await reminders_of(conn, booking_id)]


async def plan(conn: Connection, *offsets: timedelta, limit: int = 100) -> Planned:
    """Plan e-mail reminders for *offsets*, a day ahead when none is named."""
    return await reminders.plan(conn, offsets or (DAY,), ["email"], limit)


MAKE_DUE = "UPDATE jobs SET run_at = now() WHERE status = 'ready' AND run_at > now()"


async def make_due(conn: Connection) -> None:
    """Let the time pass for which jobs wait."""
    await conn.execute(MAKE_DUE)


END_LEASES = "UPDATE jobs SET locked_until = now() - interval '1 second' WHERE status = 'running'"


async def end_leases(conn: Connection) -> None:
    """Let the time pass for which running jobs are leased."""
    await conn.execute(END_LEASES)
