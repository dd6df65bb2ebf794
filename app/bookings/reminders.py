"""Which reminders are owed, and what became of each.

    booking in its window --plan--> planned + job --(handlers/booking_reminder)--> sent | skipped | failed | uncertain

Selection is by state: confirmed, not started, inside the offset, and nothing recorded for this booking, start, offset
and channel. When a tick comes decides nothing but how late. What stands in `bookings` at send time is what counts.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from app.bookings.book import Booking
from app.db import Connection

KIND = "booking.reminder"


@dataclass(frozen=True, slots=True)
class Planned:
    """What planning did: reminders *planned* with their jobs, *superseded* by a nearer offset, *missed* because the
    booking started unreminded, *cancelled* with their jobs; when the next one is due; the channels that are
    *suspended*; whether a missed booking or a suspension is on record that nobody was told of; the tables' sizes."""

    planned: int
    superseded: int
    missed: int
    cancelled: int
    next_due_at: datetime | None
    suspended: list[str]
    has_untold: bool
    bookings_bytes: int
    reminders_bytes: int


# open: every (booking, offset) that may be owed now. owed: those whose hour has come, the nearest offset marked.
# fresh: those with nothing on record; one that was skipped as moved or cancelled counts as nothing once its booking is
# confirmed for that start again. A farther offset than one on record is superseded: who changes the settings reminds
# nobody again. missed: bookings that started since the last tick that could plan, and were never planned. closed:
# reminders whose job ended without them; a job that was cancelled or deleted by hand is not planned again.
# `(SELECT $1)` hides from the planner how few values there are: it would plan each call anew to make use of it.
PLAN = """
    WITH configured AS (
        SELECT make_interval(secs => seconds::float8) AS remind_before FROM unnest((SELECT $1::text[])) AS seconds
    ),
    open AS MATERIALIZED (
        SELECT bookings.id, bookings.starts_at, bookings.created_at, configured.remind_before
        FROM bookings CROSS JOIN configured
        WHERE bookings.status = 'confirmed' AND bookings.remind_before IS NULL AND bookings.starts_at > now()
            AND bookings.starts_at <= now() + (SELECT max(remind_before) FROM configured)
        UNION
        SELECT bookings.id, bookings.starts_at, bookings.created_at,
            make_interval(secs => extract(epoch FROM own.remind_before)::float8)
        FROM bookings CROSS JOIN LATERAL unnest(bookings.remind_before) AS own (remind_before)
        WHERE bookings.status = 'confirmed' AND bookings.remind_before IS NOT NULL AND bookings.starts_at > now()
            AND reminder_window(bookings.starts_at, bookings.remind_before) @> now()
    ),
    owed AS MATERIALIZED (
        SELECT id, starts_at, created_at, remind_before, channel,
            remind_before = min(remind_before) OVER (PARTITION BY id) AS is_nearest
        FROM open CROSS JOIN unnest((SELECT $2::text[])) AS channel
        WHERE starts_at <= now() + remind_before
    ),
    fresh AS MATERIALIZED (
        SELECT owed.id, owed.starts_at, owed.created_at, owed.remind_before, owed.channel, owed.is_nearest,
            CASE WHEN owed.is_nearest THEN nextval(pg_get_serial_sequence('jobs', 'id')) END AS job_id
        FROM (
            SELECT owed.id, owed.starts_at, owed.created_at, owed.remind_before, owed.channel,
                owed.is_nearest AND NOT record.has_nearer AS is_nearest
            FROM owed LEFT JOIN reminders AS held
                ON held.booking_id = owed.id AND held.starts_at = owed.starts_at
                AND held.remind_before = owed.remind_before AND held.channel = owed.channel
            CROSS JOIN LATERAL (
                SELECT EXISTS (
                    SELECT 1 FROM reminders AS nearer
                    WHERE nearer.booking_id = owed.id AND nearer.starts_at = owed.starts_at
                        AND nearer.channel = owed.channel AND nearer.remind_before < owed.remind_before
                        AND nearer.status <> 'skipped'
                ) AS has_nearer
            ) AS record
            WHERE held.booking_id IS NULL
                OR (held.status = 'skipped' AND held.reason IN ('moved', 'cancelled')
                    AND owed.is_nearest AND NOT record.has_nearer)
            ORDER BY owed.starts_at, owed.id, owed.channel, owed.remind_before
            LIMIT $3
        ) AS owed
    ),
    recorded AS (
        INSERT INTO reminders (booking_id, starts_at, remind_before, channel, job_id, status, reason)
        SELECT id, starts_at, remind_before, channel, job_id,
            CASE WHEN is_nearest THEN 'planned' ELSE 'skipped' END,
            CASE WHEN is_nearest THEN NULL ELSE 'superseded' END
        FROM fresh
        ON CONFLICT (booking_id, starts_at, remind_before, channel) DO UPDATE
        SET status = 'planned', reason = NULL, job_id = EXCLUDED.job_id, rendered = NULL,
            idempotency_key = gen_random_uuid()::text
        WHERE reminders.status = 'skipped' AND reminders.reason IN ('moved', 'cancelled')
            AND EXCLUDED.status = 'planned'
        RETURNING booking_id, starts_at, remind_before, channel, job_id, status
    ),
    queued AS (
        INSERT INTO jobs (id, queue, kind, payload, run_at, expires_at)
        SELECT recorded.job_id, 'reminders', $4,
            jsonb_build_object(
                'booking_id', recorded.booking_id, 'starts_at', recorded.starts_at, 'channel', recorded.channel,
                'remind_before_seconds', extract(epoch FROM recorded.remind_before)::bigint
            ),
            least(now(), greatest(recorded.starts_at - recorded.remind_before, fresh.created_at)), recorded.starts_at
        FROM recorded JOIN fresh ON fresh.job_id = recorded.job_id
        WHERE recorded.status = 'planned'
        RETURNING id
    ),
    missed AS (
        INSERT INTO reminders (booking_id, starts_at, remind_before, channel, status, reason)
        SELECT bookings.id, bookings.starts_at,
            make_interval(secs => extract(epoch FROM coalesce(
                (SELECT min(own) FROM unnest(bookings.remind_before) AS own),
                (SELECT min(remind_before) FROM configured)
            ))::float8),
            way.channel, 'skipped', 'started'
        FROM bookings CROSS JOIN unnest((SELECT $2::text[])) AS way (channel)
        WHERE bookings.status = 'confirmed' AND bookings.starts_at <= now()
            AND bookings.starts_at > (
                SELECT started_at FROM ticks
                WHERE NOT summary @> '{"errors": [{"section": "plan"}]}'
                ORDER BY started_at DESC LIMIT 1
            )
            AND bookings.created_at < bookings.starts_at AND bookings.remind_before IS DISTINCT FROM '{}'
            AND NOT EXISTS (
                SELECT 1 FROM reminders AS held
                WHERE held.booking_id = bookings.id AND held.starts_at = bookings.starts_at
                    AND held.channel = way.channel
            )
        ORDER BY bookings.starts_at
        LIMIT 1000
        ON CONFLICT (booking_id, starts_at, remind_before, channel) DO NOTHING
        RETURNING booking_id
    ),
    ended AS MATERIALIZED (
        SELECT reminders.booking_id, reminders.starts_at, reminders.remind_before, reminders.channel, jobs.status,
            jobs.last_error
        FROM reminders LEFT JOIN jobs ON jobs.id = reminders.job_id
        WHERE reminders.status = 'planned' AND (jobs.status IN ('dead', 'expired', 'cancelled') OR jobs.id IS NULL)
        ORDER BY reminders.starts_at
        LIMIT $3
        FOR NO KEY UPDATE OF reminders SKIP LOCKED
    ),
    closed AS (
        UPDATE reminders
        SET status = CASE WHEN ended.status = 'dead' THEN 'failed' ELSE 'skipped' END,
            reason = CASE
                WHEN ended.status = 'dead' THEN coalesce(ended.last_error, 'dead')
                WHEN ended.status = 'expired' OR reminders.starts_at <= now() THEN 'started'
                ELSE 'cancelled by hand'
            END
        FROM ended
        WHERE reminders.booking_id = ended.booking_id AND reminders.starts_at = ended.starts_at
            AND reminders.remind_before = ended.remind_before AND reminders.channel = ended.channel
        RETURNING reminders.reason
    )
    SELECT
        (SELECT count(*) FROM queued) AS planned,
        (SELECT count(*) FROM recorded WHERE status = 'skipped') AS superseded,
        (SELECT count(*) FROM missed) + (SELECT count(*) FROM closed WHERE reason = 'started') AS missed,
        (SELECT count(*) FROM closed WHERE reason = 'cancelled by hand') AS cancelled,
        (
            SELECT min(next.due_at) FROM configured CROSS JOIN LATERAL (
                SELECT bookings.starts_at - configured.remind_before AS due_at
                FROM bookings
                WHERE bookings.status = 'confirmed' AND bookings.remind_before IS NULL
                    AND bookings.starts_at > now() + configured.remind_before
                ORDER BY bookings.starts_at LIMIT 1
            ) AS next
        ) AS next_due_at,
        ARRAY(SELECT name FROM channels WHERE suspended_until > now() ORDER BY name) AS suspended,
        EXISTS (
            SELECT 1 FROM reminders
            WHERE status = 'skipped' AND reason = 'started' AND alerted_at IS NULL
                AND starts_at > now() - interval '7 days'
        )
        OR EXISTS (
            SELECT 1 FROM channels
            WHERE suspended_until > now() AND alerted_until IS DISTINCT FROM suspended_until
        ) AS has_untold,
        pg_relation_size('bookings') AS bookings_bytes,
        pg_relation_size('reminders') AS reminders_bytes
"""


async def plan(connection: Connection, offsets: Sequence[timedelta], channels: Sequence[str], limit: int) -> Planned:
    """Record up to *limit* reminders that are owed now, nearest start first, each with its job, in one statement.

    Any number of ticks may plan at once: the reminder's key decides, and the loser inserts nothing.
    """
    seconds = [str(offset.total_seconds()) for offset in offsets]
    row = await connection.fetchrow(PLAN, seconds, channels, limit, KIND)
    assert row is not None  # noqa: S101 - a SELECT of scalars returns one row
    return Planned(**dict(row.items()))


@dataclass(frozen=True, slots=True)
class ReminderKey:
    """What makes a reminder one of its kind."""

    booking_id: str
    starts_at: datetime
    remind_before: timedelta
    channel: str


@dataclass(frozen=True, slots=True)
class Owed:
    """A reminder as it stands at send time, beside the booking as it stands now."""

    booking: Booking | None
    status: str
    was_sending: bool
    idempotency_key: str
    rendered: dict[str, Any] | None
    is_superseded: bool
    suspended_seconds: float
    now: datetime


OWED = """
    SELECT asked.place, reminders.status AS reminder_status, reminders.idempotency_key,
        coalesce(reminders.reason = 'sending', FALSE) AS was_sending, reminders.rendered::text,
        coalesce(extract(epoch FROM channels.suspended_until - now())::float8, 0) AS suspended_seconds,
        EXISTS (
            SELECT 1 FROM unnest(coalesce(
                bookings.remind_before, ARRAY(SELECT make_interval(secs => s::float8) FROM unnest($5::text[]) AS s)
            )) AS own (remind_before)
            WHERE make_interval(secs => extract(epoch FROM own.remind_before)::float8) < reminders.remind_before
                AND bookings.starts_at
                    <= now() + make_interval(secs => extract(epoch FROM own.remind_before)::float8)
        ) AS is_superseded,
        now() AS now,
        bookings.id, bookings.title, bookings.starts_at, bookings.ends_at, bookings.status, bookings.attendee_name,
        bookings.attendee_email, bookings.attendee_line_id, bookings.time_zone, bookings.locale, bookings.location,
        CASE WHEN bookings.remind_before IS NOT NULL THEN
            ARRAY(SELECT extract(epoch FROM own)::text FROM unnest(bookings.remind_before) AS own)
        END AS remind_before, bookings.created_at, bookings.updated_at
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
        WITH ORDINALITY AS asked (booking_id, starts_at, before_seconds, channel, place)
    JOIN reminders
        ON reminders.booking_id = asked.booking_id AND reminders.starts_at = asked.starts_at::timestamptz
        AND reminders.remind_before = make_interval(secs => asked.before_seconds::float8)
        AND reminders.channel = asked.channel
    LEFT JOIN bookings ON bookings.id = reminders.booking_id
    LEFT JOIN channels ON channels.name = reminders.channel
"""


async def load(connection: Connection, keys: Sequence[ReminderKey], offsets: Sequence[timedelta]) -> list[Owed | None]:
    """Return the reminder under each of *keys* with its booking as both stand now, None where there is none."""
    seconds = [str(offset.total_seconds()) for offset in offsets]
    found: list[Owed | None] = [None] * len(keys)
    for row in await connection.fetch(OWED, *columns(keys), seconds):
        found[row["place"] - 1] = _owed(row)
    return found


def _owed(row: Any) -> Owed:
    booking = None
    if row["id"] is not None:
        values = {name: row[name] for name in Booking.__slots__}
        own = values["remind_before"]
        before = None if own is None else tuple(timedelta(seconds=float(seconds)) for seconds in own)
        booking = Booking(**values | {"remind_before": before})
    return Owed(
        booking=booking,
        status=row["reminder_status"],
        was_sending=row["was_sending"],
        idempotency_key=row["idempotency_key"],
        rendered=None if row["rendered"] is None else json.loads(row["rendered"]),
        is_superseded=row["is_superseded"],
        suspended_seconds=row["suspended_seconds"],
        now=row["now"],
    )


def columns(keys: Sequence[ReminderKey]) -> tuple[list[str], list[str], list[str], list[str]]:
    """Return *keys* column by column, as text."""
    return (
        [key.booking_id for key in keys],
        [key.starts_at.isoformat() for key in keys],
        [str(key.remind_before.total_seconds()) for key in keys],
        [key.channel for key in keys],
    )
