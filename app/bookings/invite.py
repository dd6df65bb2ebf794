"""The booking as a file for a calendar: RFC 5545, METHOD:PUBLISH.

Instants are UTC, so no zone rules travel and no summer time can shift them. The UID stays that of the
booking: a reminder after a move replaces the entry of the one before.
"""

import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from icalendar import Calendar, Event, vCalAddress

from app.channels.clean import one_line

if TYPE_CHECKING:
    from app.bookings.book import Booking

SEQUENCE_MAX = 2**31 - 1


def make_invite(booking: "Booking", *, summary: str, location: str, organizer: str, now: datetime) -> str:
    """Return the .ics text of *booking*, stamped *now*, published by the address *organizer*."""
    event = Event()
    event.add("uid", f"{uuid.uuid5(uuid.NAMESPACE_URL, f'dormouse:booking:{one_line(booking.id)}')}@dormouse")
    event.add("dtstamp", now.astimezone(UTC))
    event.add("dtstart", booking.starts_at.astimezone(UTC))
    if booking.ends_at is not None and booking.ends_at > booking.starts_at:
        event.add("dtend", booking.ends_at.astimezone(UTC))
    event.add("summary", summary)
    if location:
        event.add("location", location)
    event.add("organizer", vCalAddress(f"mailto:{organizer}"))
    event.add("sequence", _sequence(booking))
    event.add("status", "CONFIRMED")
    calendar = Calendar()
    calendar.add("prodid", "-//Dormouse//Reminders//EN")
    calendar.add("version", "2.0")
    calendar.add("method", "PUBLISH")
    calendar.add_component(event)
    return str(calendar.to_ical(), "utf-8")


def _sequence(booking: "Booking") -> int:
    """Return a number that every change of the booking raises, so that calendars take the newer entry."""
    seconds = (booking.updated_at - booking.created_at).total_seconds()
    return min(max(int(seconds), 0), SEQUENCE_MAX)
