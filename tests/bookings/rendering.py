"""One booking and its reminder, with whatever a test wants changed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from icalendar import Calendar

from app.bookings.book import Booking
from app.bookings.render import render_reminder
from app.channels import Message
from app.config import Settings

BOOKING = Booking(
    id="b1",
    title="Haircut",
    starts_at=datetime(2026, 12, 5, 9, 30, tzinfo=UTC),
    ends_at=datetime(2026, 12, 5, 10, 30, tzinfo=UTC),
    status="confirmed",
    attendee_name="Mali",
    attendee_email="mali@example.com",
    attendee_line_id=None,
    time_zone="Asia/Bangkok",
    locale="en",
    location="Room 4",
    remind_before=None,
    created_at=datetime(2026, 12, 1, tzinfo=UTC),
    updated_at=datetime(2026, 12, 1, tzinfo=UTC),
)


def utc(*parts: int) -> datetime:
    """An instant in UTC."""
    year, month, day, hour, minute = parts
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


def settings_with(**changes: Any) -> Settings:
    """Settings with *changes*."""
    return Settings(**changes)


def events_of(message: Message) -> list[Any]:
    """The events of the invitation, as a calendar reads them."""
    return Calendar.from_ical(message.ics).walk("VEVENT")


def render(*, hours: float = 24, settings: Settings | None = None, **changes: Any) -> Message:
    """The reminder of the booking with *changes*."""
    return render_reminder(
        replace(BOOKING, **changes),
        remind_before=timedelta(hours=hours),
        settings=settings or settings_with(),
        message_id="<1@dormouse.invalid>",
        now=utc(2026, 12, 4, 9, 30),
    )
