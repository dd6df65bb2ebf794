"""The reminders: what is coming and what each booking will get, and what became of those that are over.

upcoming                  bookings by start, each with what is planned, sent or skipped for each offset
uncertain, failed, sent, skipped    records, the newest start first; an uncertain one waits for a person
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from starlette.responses import Response

from app.bookings.book import Booking, list_bookings
from app.db import Connection
from app.errors import NotFound
from app.web.admin.times import spell_when
from app.web.admin.visit import Visit
from app.web.problems import Refused

PAGE = 50
LISTS = ("uncertain", "failed", "sent", "skipped")
CURSOR_PARTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Reminder:
    """A row of `reminders`, with its booking's title and its job's status as they stand now."""

    booking_id: str
    starts_at: datetime
    remind_before: timedelta
    channel: str
    status: str
    reason: str | None
    sent_at: datetime | None
    job_id: int | None
    title: str | None
    job_status: str | None

    @property
    def cursor(self) -> str:
        """Where the list goes on after this one."""
        seconds = self.remind_before.total_seconds()
        return json.dumps([self.starts_at.isoformat(), self.booking_id, seconds, self.channel])


@dataclass(frozen=True, slots=True)
class Promise:
    """What one offset of a booking gets: *status* of its record, else owed or later; *at* is when it goes out."""

    offset: timedelta
    at: datetime
    status: str
    record: Reminder | None


@dataclass(frozen=True, slots=True)
class Upcoming:
    """A booking and what it will get."""

    booking: Booking
    when: str
    promises: list[Promise]


REMINDERS_OF = """
    SELECT reminders.booking_id, reminders.starts_at, reminders.remind_before, reminders.channel, reminders.status,
        reminders.reason, reminders.sent_at, reminders.job_id, NULL AS title, NULL AS job_status
    FROM reminders
    WHERE reminders.booking_id = ANY ($1::text[])
    ORDER BY reminders.booking_id, reminders.starts_at DESC, reminders.remind_before DESC
    LIMIT 2000
"""


async def read_records(connection: Connection, booking_ids: Sequence[str]) -> Mapping[str, list[Reminder]]:
    """Return the records of each booking's reminders, by booking."""
    found: dict[str, list[Reminder]] = {}
    for row in await connection.fetch(REMINDERS_OF, booking_ids):
        found.setdefault(row["booking_id"], []).append(Reminder(**dict(row.items())))
    return found


def promise(
    booking: Booking, records: Sequence[Reminder], configured: Sequence[timedelta], now: datetime
) -> list[Promise]:
    """Return what each offset of *booking* gets, the longest first; none for one that is cancelled."""
    if booking.status != "confirmed":
        return []
    offsets = sorted(set(configured if booking.remind_before is None else booking.remind_before), reverse=True)
    held = {record.remind_before: record for record in records if record.starts_at == booking.starts_at}
    due = [offset for offset in offsets if booking.starts_at - offset <= now]
    found = []
    for offset in offsets:
        record, at = held.get(offset), booking.starts_at - offset
        status = record.status if record else "later" if at > now else "owed" if offset == due[-1] else "superseded"
        found.append(Promise(offset, at, status, record))
    return found


async def show_upcoming(visit: Visit) -> Response:
    """List the bookings that have not started, by start."""
    settings = visit.services.settings
    after = _place(visit.query("after")) or (visit.now, "")
    bookings = await list_bookings(visit.connection, after=after, limit=PAGE + 1)
    records = await read_records(visit.connection, [booking.id for booking in bookings[:PAGE]])
    upcoming = [
        Upcoming(
            booking,
            spell_when(booking, visit.speech, settings),
            promise(booking, records.get(booking.id, ()), settings.reminder_offsets, visit.now),
        )
        for booking in bookings[:PAGE]
    ]
    more = None
    if len(bookings) > PAGE:
        more = json.dumps([bookings[PAGE - 1].starts_at.isoformat(), bookings[PAGE - 1].id])
    return visit.render("upcoming.html", upcoming=upcoming, more=more, lists=LISTS, shown="upcoming")


LIST_REMINDERS = """
    SELECT reminders.booking_id, reminders.starts_at, reminders.remind_before, reminders.channel, reminders.status,
        reminders.reason, reminders.sent_at, reminders.job_id, bookings.title, jobs.status AS job_status
    FROM (
        SELECT booking_id, starts_at, remind_before, channel, status, reason, sent_at, job_id
        FROM reminders
        WHERE status = $1 AND (starts_at, booking_id, remind_before, channel)
            < (coalesce($2::timestamptz, 'infinity'), $3::text, make_interval(secs => $4), $5::text)
        ORDER BY starts_at DESC, booking_id DESC, remind_before DESC, channel DESC
        LIMIT $6
    ) AS reminders
    LEFT JOIN bookings ON bookings.id = reminders.booking_id
    LEFT JOIN jobs ON jobs.id = reminders.job_id
    ORDER BY reminders.starts_at DESC, reminders.booking_id DESC, reminders.remind_before DESC, reminders.channel DESC
"""


async def list_reminders(connection: Connection, status: str, before: str = "", limit: int = PAGE) -> list[Reminder]:
    """Return up to *limit* reminders that ended as *status*, the newest start first, after the cursor *before*."""
    rows = await connection.fetch(LIST_REMINDERS, status, *_cursor(before), limit)
    return [Reminder(**dict(row.items())) for row in rows]


async def show_reminders(visit: Visit) -> Response:
    """List the reminders that ended in one way."""
    status = visit.place["status"]
    if status not in LISTS:
        raise NotFound("there is no such list of reminders")
    rows = await list_reminders(visit.connection, status, visit.query("before"), PAGE + 1)
    more = rows[PAGE - 1].cursor if len(rows) > PAGE else None
    return visit.render("reminders.html", reminders=rows[:PAGE], more=more, lists=LISTS, shown=status)


def _cursor(text: str) -> tuple[datetime | None, str, float, str]:
    if not text:
        return None, "", 0.0, ""
    match _parts(text):
        case [str(moment), str(booking_id), int() | float() as seconds, str(channel)]:
            return _moment(moment), booking_id, min(max(float(seconds), 0.0), 1e9), channel
    raise Refused(422, "The address names no place in this list.")


def _place(text: str) -> tuple[datetime, str] | None:
    if not text:
        return None
    match _parts(text):
        case [str(moment), str(booking_id)]:
            return _moment(moment), booking_id
    raise Refused(422, "The address names no place in this list.")


def _parts(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Refused(422, "The address names no place in this list.") from None
    if moment.tzinfo is None:
        raise Refused(422, "The address names no place in this list.")
    return moment
