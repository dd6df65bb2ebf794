"""The book: reserved times, kept under the caller's own ids.

    confirmed --cancel--> cancelled        put again: moved, corrected, or confirmed anew

Reminders follow from what stands here when they are sent, never from what stood here when they were planned.
"""

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

import asyncpg

from app.db import Connection
from app.errors import BadInput, NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBooking:
    """A booking as its owner states it; times are aware, *remind_before* None means the configured offsets."""

    id: str
    starts_at: datetime
    title: str = ""
    ends_at: datetime | None = None
    status: str = "confirmed"
    attendee_name: str | None = None
    attendee_email: str | None = None
    attendee_line_id: str | None = None
    time_zone: str | None = None
    locale: str | None = None
    location: str | None = None
    remind_before: tuple[timedelta, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """A row of `bookings`."""

    id: str
    title: str
    starts_at: datetime
    ends_at: datetime | None
    status: str
    attendee_name: str | None
    attendee_email: str | None
    attendee_line_id: str | None
    time_zone: str | None
    locale: str | None
    location: str | None
    remind_before: tuple[timedelta, ...] | None
    created_at: datetime
    updated_at: datetime

    def as_json(self) -> dict[str, Any]:
        """Return the row with times as ISO 8601 text and offsets in seconds."""
        row = asdict(self) | {"remind_before": None}
        if self.remind_before is not None:
            row["remind_before"] = [int(offset.total_seconds()) for offset in self.remind_before]
        return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}


PUT_BOOKING = """
    INSERT INTO bookings (id, title, starts_at, ends_at, status, attendee_name, attendee_email, attendee_line_id,
        time_zone, locale, location, remind_before)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
        CASE WHEN $12::text[] IS NOT NULL
            THEN ARRAY(SELECT make_interval(secs => s::float8) FROM unnest($12::text[]) AS s) END)
    ON CONFLICT (id) DO UPDATE
    SET title = EXCLUDED.title, starts_at = EXCLUDED.starts_at, ends_at = EXCLUDED.ends_at, status = EXCLUDED.status,
        attendee_name = EXCLUDED.attendee_name, attendee_email = EXCLUDED.attendee_email,
        attendee_line_id = EXCLUDED.attendee_line_id, time_zone = EXCLUDED.time_zone, locale = EXCLUDED.locale,
        location = EXCLUDED.location, remind_before = EXCLUDED.remind_before
    RETURNING id, title, starts_at, ends_at, status, attendee_name, attendee_email, attendee_line_id, time_zone, locale,
        location, remind_before, created_at, updated_at, (xmax = 0) AS is_new
"""


async def put_booking(connection: Connection, booking: NewBooking) -> tuple[Booking, bool]:
    """Write *booking* in the caller's transaction, new or over the one with its id; return it and whether it is new.

    Raise BadInput for what the table refuses, and for a time without a zone: the driver would call it UTC.
    """
    for name, moment in (("starts_at", booking.starts_at), ("ends_at", booking.ends_at)):
        if isinstance(moment, datetime) and moment.utcoffset() is None:
            raise BadInput(f"{name} needs a time zone")
    offsets = booking.remind_before
    try:
        row = await connection.fetchrow(
            PUT_BOOKING,
            booking.id,
            booking.title,
            booking.starts_at,
            booking.ends_at,
            booking.status,
            booking.attendee_name,
            booking.attendee_email,
            booking.attendee_line_id,
            booking.time_zone,
            booking.locale,
            booking.location,
            None if offsets is None else [str(offset.total_seconds()) for offset in offsets],
        )
    except asyncpg.CheckViolationError as error:
        raise BadInput((error.constraint_name or "a check failed").replace("_", " ")) from error
    except (asyncpg.DataError, asyncpg.UntranslatableCharacterError) as error:
        raise BadInput("a value does not fit its column") from error
    assert row is not None  # noqa: S101 - an upsert that always writes returns its row
    return _booking(row), row["is_new"]


GET_BOOKING = """
    SELECT id, title, starts_at, ends_at, status, attendee_name, attendee_email, attendee_line_id, time_zone, locale,
        location, remind_before, created_at, updated_at
    FROM bookings
    WHERE id = $1
"""


async def get_booking(connection: Connection, booking_id: str) -> Booking | None:
    """Return the booking with *booking_id*, or None."""
    row = await connection.fetchrow(GET_BOOKING, booking_id)
    return None if row is None else _booking(row)


CANCEL_BOOKING = """
    UPDATE bookings
    SET status = 'cancelled'
    WHERE id = $1
    RETURNING id, title, starts_at, ends_at, status, attendee_name, attendee_email, attendee_line_id, time_zone, locale,
        location, remind_before, created_at, updated_at
"""


async def cancel_booking(connection: Connection, booking_id: str) -> Booking:
    """Cancel the booking with *booking_id*, again if need be; raise NotFound. None of its reminders goes out then."""
    row = await connection.fetchrow(CANCEL_BOOKING, booking_id)
    if row is None:
        raise NotFound("there is no booking with this id")
    return _booking(row)


LIST_BOOKINGS = """
    SELECT id, title, starts_at, ends_at, status, attendee_name, attendee_email, attendee_line_id, time_zone, locale,
        location, remind_before, created_at, updated_at
    FROM bookings
    WHERE (starts_at, id) > (coalesce($1, '-infinity'::timestamptz), coalesce($2, ''))
    ORDER BY starts_at, id
    LIMIT $3
"""


async def list_bookings(
    connection: Connection, *, after: tuple[datetime, str] | None = None, limit: int = 50
) -> list[Booking]:
    """Return up to *limit* bookings by start; page on with the last one's (starts_at, id) as *after*."""
    start, booking_id = after if after is not None else (None, None)
    return [_booking(row) for row in await connection.fetch(LIST_BOOKINGS, start, booking_id, limit)]


def _booking(row: Any) -> Booking:
    values = {name: row[name] for name in Booking.__slots__}
    if values["remind_before"] is not None:
        values["remind_before"] = tuple(values["remind_before"])
    return Booking(**values)
