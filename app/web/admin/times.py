"""A booking's time as its attendee reads it, in the language of the page."""

from app.bookings.book import Booking
from app.config import Settings
from app.web.admin.speech import Speech


def spell_when(booking: Booking, speech: Speech, settings: Settings) -> str:
    """Return the start in the booking's own zone: 5 Dec 2026, 15:04 CET."""
    from app.bookings.when import Reader, find_locale, find_zone, spell_briefly  # noqa: PLC0415 - it brings Babel

    reader = Reader(find_locale(speech.code), settings.reminder_calendar)
    return spell_briefly(booking.starts_at, find_zone(booking.time_zone, booking.starts_at), reader)
