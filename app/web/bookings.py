"""/api/bookings: what is booked, from producers that do not share the database.

    PUT /api/bookings/{id}      create or replace      201 or 200
    GET /api/bookings/{id}      one
    DELETE /api/bookings/{id}   cancel; again and again if you like
    GET /api/bookings           a page in the order of the start, and the cursor of the next

The id is the producer's own, so that a call may be repeated. Here a zone must be known and a time must have
an offset; rows that come by SQL are taken as they are, and an unknown zone falls back to UTC in the reminder.
"""

import base64
import json
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Path, Query
from pydantic import Field, StringConstraints, TypeAdapter, model_validator
from starlette.responses import JSONResponse

from app.bookings.book import Booking, NewBooking, cancel_booking, get_booking, list_bookings, put_booking
from app.errors import BadInput, NotFound
from app.web.bodies import parse_json
from app.web.deps import Here
from app.web.fields import Body, Email, Instant, Line, Locale, Offsets, Zone, read_instant, write_offset
from app.web.guard import GuardedRoute
from app.web.problems import RESPONSES, Refused

PAGE = 100
CURSOR_CHARS = 2_000
ID_CHARS = 200

router = APIRouter(route_class=GuardedRoute, responses=RESPONSES)

CURSOR_ID = TypeAdapter(Annotated[str, StringConstraints(strict=True, max_length=ID_CHARS)])
BookingId = Annotated[str, Path(min_length=1, max_length=ID_CHARS)]


class BookingRequest(Body):
    """One booking; *remind_before* as `["24h", "1h"]`, absent = the configured ones, empty = no reminder."""

    title: Line = ""
    starts_at: Instant
    ends_at: Instant | None = None
    status: Literal["confirmed", "cancelled"] = "confirmed"
    attendee_name: Line | None = None
    attendee_email: Email | None = None
    attendee_line_id: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    time_zone: Zone | None = None
    locale: Locale | None = None
    location: Line | None = None
    remind_before: Offsets | None = None

    @model_validator(mode="after")
    def _ends_after_start(self) -> Self:
        if self.ends_at is not None and self.ends_at < self.starts_at:
            raise ValueError("ends_at is before starts_at")
        return self

    def as_booking(self, booking_id: str) -> NewBooking:
        """Return the row to write under *booking_id*."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        offsets = None if self.remind_before is None else tuple(self.remind_before)
        return NewBooking(id=booking_id, **values | {"remind_before": offsets})


@router.put("/api/bookings/{booking_id:path}", response_model=None)
async def put(services: Here, booking_id: BookingId, asked: BookingRequest) -> JSONResponse:
    """Create the booking, or replace all of it: 201 or 200."""
    async with services.database.acquire() as connection, connection.transaction():
        booking, is_created = await put_booking(connection, asked.as_booking(booking_id))
    return JSONResponse(as_json(booking), 201 if is_created else 200)


@router.get("/api/bookings/{booking_id:path}", response_model=None)
async def get(services: Here, booking_id: BookingId) -> JSONResponse:
    """Return the booking."""
    async with services.database.acquire() as connection:
        booking = await get_booking(connection, booking_id)
    if booking is None:
        raise NotFound("There is no booking with this id.")
    return JSONResponse(as_json(booking))


@router.delete("/api/bookings/{booking_id:path}", response_model=None)
async def delete(services: Here, booking_id: BookingId) -> JSONResponse:
    """Cancel the booking: nobody is reminded of it any more. It stays to be read."""
    async with services.database.acquire() as connection, connection.transaction():
        booking = await cancel_booking(connection, booking_id)
    return JSONResponse(as_json(booking))


@router.get("/api/bookings", response_model=None)
async def page(
    services: Here,
    limit: Annotated[int, Query(ge=1, le=PAGE)] = PAGE,
    after: Annotated[str | None, Query(max_length=CURSOR_CHARS)] = None,
) -> JSONResponse:
    """Return up to *limit* bookings after the cursor *after*, and the next cursor, null on the last."""
    start = None if after is None else read_cursor(after)
    async with services.database.acquire() as connection:
        bookings = await list_bookings(connection, after=start, limit=limit + 1)
    shown = bookings[:limit]
    following = write_cursor(shown[-1]) if len(bookings) > limit else None
    return JSONResponse({"bookings": [as_json(booking) for booking in shown], "next": following})


def as_json(booking: Booking) -> dict[str, Any]:
    """Return *booking* as the API shows it: the very members that PUT takes, its id and its two times."""
    offsets = booking.remind_before
    return {
        "id": booking.id,
        "title": booking.title,
        "starts_at": booking.starts_at.isoformat(),
        "ends_at": _iso(booking.ends_at),
        "status": booking.status,
        "attendee_name": booking.attendee_name,
        "attendee_email": booking.attendee_email,
        "attendee_line_id": booking.attendee_line_id,
        "time_zone": booking.time_zone,
        "locale": booking.locale,
        "location": booking.location,
        "remind_before": None if offsets is None else [write_offset(offset) for offset in offsets],
        "created_at": _iso(booking.created_at),
        "updated_at": _iso(booking.updated_at),
    }


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def write_cursor(booking: Booking) -> str:
    """Return an opaque text that `read_cursor` takes: the place of *booking* in the order."""
    place = json.dumps([booking.starts_at.isoformat(), booking.id], ensure_ascii=False)
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> tuple[datetime, str]:
    """Return the place that *cursor* names; raise BadInput for a text that is no cursor of ours."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        starts_at, booking_id = parse_json(base64.b64decode(padded, b"-_", validate=True))
        return read_instant(starts_at), CURSOR_ID.validate_python(booking_id)
    except (Refused, ValueError, TypeError):
        raise BadInput("after: this is not a cursor of an earlier page") from None
