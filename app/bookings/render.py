"""A booking made into the message that reminds of it: the same message for the same arguments.

    recipient checked -> words cleaned -> zone and language found -> text, HTML, invitation -> Message

Whatever a stranger wrote is cleaned and escaped, never refused: the reminder goes out. Only a recipient that
no mail can reach raises. Import this module inside the function that needs it: Babel, Jinja and icalendar
come with it.
"""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from email_validator import EmailNotValidError, validate_email
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from app.bookings.invite import make_invite
from app.bookings.when import Reader, find_locale, find_zone, spell_ahead, spell_briefly, spell_span
from app.channels.clean import clip, one_line, subject_line
from app.channels.message import Message
from app.channels.mime import sender_address
from app.config import Settings
from app.errors import RecipientRefused

if TYPE_CHECKING:
    from app.bookings.book import Booking

SUBJECT_TITLE_MAX = 80
FIELD_MAX = 2000
ADDRESS_MAX = 254


def render_reminder(
    booking: "Booking", *, remind_before: timedelta, settings: Settings, message_id: str, now: datetime
) -> Message:
    """Return the reminder of *booking* that is due *remind_before* its start, as written at *now*.

    Raise RecipientRefused when the booking has no usable e-mail address.
    """
    to = check_recipient(booking.attendee_email)
    instants = [instant for instant in (booking.starts_at, booking.ends_at) if instant is not None]
    zone = find_zone(booking.time_zone, *instants)
    reader = Reader(find_locale(booking.locale), settings.reminder_calendar)
    words = reader.words
    title, name, location = (
        clip(one_line(text), FIELD_MAX) for text in (booking.title, booking.attendee_name, booking.location)
    )
    title = title or words.untitled
    facts = {
        "language": reader.locale.language,
        "words": words,
        "greeting": words.greeting.format(name=name) if name else words.greeting_nameless,
        "title": title,
        "when": spell_span(booking.starts_at, booking.ends_at, zone, reader),
        "zone": zone.name or words.zone_unknown,
        "location": location,
        "link": location if is_web_link(location) else None,
        "why": words.why.format(ahead=spell_ahead(remind_before, reader)),
    }
    return Message(
        sender=one_line(settings.email_from),
        to=to,
        subject=subject_line(
            words.subject.format(
                title=clip(title, SUBJECT_TITLE_MAX), when=spell_briefly(booking.starts_at, zone, reader)
            )
        ),
        text=_filled("reminder.txt", facts),
        html=_filled("reminder.html", facts),
        ics=make_invite(
            booking, summary=title, location=location, organizer=sender_address(settings.email_from), now=now
        ),
        message_id=message_id,
        date=format_datetime(now.astimezone(UTC)),
    )


def check_recipient(address: str | None) -> str:
    """Return *address* as a mail server takes it (ASCII, one recipient); raise RecipientRefused otherwise.

    No name server is asked.
    """
    text = (address or "").strip()
    if len(text) > ADDRESS_MAX:
        raise RecipientRefused("invalid_recipient")
    try:
        found = validate_email(text, check_deliverability=False, allow_smtputf8=False, strict=True)
    except (EmailNotValidError, ValueError):
        raise RecipientRefused("invalid_recipient") from None
    if found.ascii_email is None:
        raise RecipientRefused("invalid_recipient")
    return found.ascii_email


def is_web_link(text: str) -> bool:
    """Say whether *text* as a whole is an http or https address: nothing else becomes a link."""
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and " " not in text
    except ValueError:
        return False


@lru_cache(maxsize=1)
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("app.bookings"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _filled(template: str, facts: dict[str, object]) -> str:
    return _templates().get_template(template).render(facts)
