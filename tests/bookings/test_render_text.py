"""Whatever a stranger wrote, the reminder goes out, says it plainly and does nothing else."""

import json
from email import message_from_bytes
from email.policy import default
from html.parser import HTMLParser
from typing import Any

import pytest
from icalendar import Calendar

from app.bookings.render import is_web_link
from app.channels import Message
from app.channels.mime import as_bytes
from tests.bookings.rendering import events_of, render, settings_with, utc

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
NASTY = '</b><a href="https://evil.example.com">Confirm</a><script>x</script>&amp;\'"'
ODD = [
    "X\r\nBcc: v@example.org",
    "X\nBcc: v@example.org",
    "n" * 100_000,
    FAMILY * 500,
    "\u202eevil\u202c \u2066x\u2069",
    "e" + "\u0301" * 500,
    "a\x00b\x07c\x7fd\x85e\u2028f",
    "{title} {0} %s {{ 7*7 }} {% for %}",
    "half \ud800 pair",
    "=?utf-8?q?=0D=0ABcc:_v=40example.org?=",
    "BEGIN:VEVENT\r\nATTENDEE:mailto:v@example.org",
    NASTY,
    "   ",
    "",
    None,
]


class Tags(HTMLParser):
    """Collects the elements of a page and where its links lead."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.links: list[str | None] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.links += [value for name, value in attrs if name in {"href", "src"}]


@pytest.mark.parametrize("text", ODD)
@pytest.mark.parametrize("field", ["title", "attendee_name", "location", "time_zone", "locale", "id"])
def test_no_text_stops_a_reminder_or_adds_a_recipient(field: str, text: str | None) -> None:
    changes: dict[str, Any] = {field: text or "" if field in {"id", "title"} else text}

    message = render(**changes)

    raw = as_bytes(message)
    mail = message_from_bytes(raw, policy=default)
    assert mail.get_all("To") == ["mali@example.com"]
    assert mail.get_all("Bcc") is None
    assert len(mail.get_all("Subject") or []) == 1
    assert max(len(line) for line in raw.split(b"\r\n")) <= 998
    assert "\x00" not in json.dumps(message.as_json(), ensure_ascii=False)
    assert len(events_of(message)) == 1
    assert "ATTENDEE" not in [line.split(":")[0] for line in message.ics.split("\r\n")]
    assert Tags(message.html).links == []
    assert Message.from_json(json.loads(json.dumps(message.as_json()))) == message


@pytest.mark.parametrize("field", ["title", "attendee_name", "location"])
def test_markup_is_escaped_in_html_and_raw_in_text(field: str) -> None:
    changes: dict[str, Any] = {field: NASTY}

    message = render(**changes)

    page = Tags(message.html)
    assert NASTY in message.text
    assert NASTY not in message.html
    assert "&lt;script&gt;" in message.html
    assert {"a", "script", "b"}.isdisjoint(page.names)


@pytest.mark.parametrize(
    ("location", "is_link"),
    [
        ("https://meet.example.com/a?b=1&c=2", True),
        ("http://meet.example.com", True),
        ("HTTPS://meet.example.com", True),
        ("javascript:alert(1)", False),
        ("java\nscript:alert(1)", False),
        ("data:text/html,x", False),
        ("//evil.example.com", False),
        ("https://", False),
        ("https:///x", False),
        ("https://[x", False),
        ("https://meet.example.com and more", False),
        ("Room 4", False),
        ("", False),
        ('https://x.example.com/"onmouseover="y', True),
    ],
)
def test_only_web_addresses_become_links(location: str, is_link: bool) -> None:
    message = render(location=location)

    assert is_web_link(location) is is_link or "\n" in location
    assert Tags(message.html).links == ([location] if is_link else [])
    assert location.replace("\n", " ") in message.text
    assert "onmouseover=" not in message.html.replace("&#34;onmouseover=&#34;", "")


@pytest.mark.parametrize(
    ("title", "kept"),
    [("x" * 2000, "x" * 79), (FAMILY * 500, FAMILY), ("e" + "\u0301" * 500 + "nd", "e\u0301"), ("short", "short")],
)
def test_a_subject_is_cut_between_characters(title: str, kept: str) -> None:
    subject = render(title=title).subject

    assert len(subject) <= 160
    assert kept in subject
    assert subject.endswith("5 Dec 2026, 16:30 UTC+07:00")
    assert "\u200d\u2026" not in subject


def test_a_subject_holds_no_direction_override() -> None:
    subject = render(title="abc\u202egnp.exe\u202c\u2067\u2069\u200f").subject

    assert subject == "Reminder: abcgnp.exe, 5 Dec 2026, 16:30 UTC+07:00"


@pytest.mark.parametrize(
    ("name", "locale", "greeting"),
    [
        ("Mali", "en", "Hello Mali,"),
        (None, "en", "Hello,"),
        ("  ", "en", "Hello,"),
        ("มะลิ", "th", "สวัสดีคุณ มะลิ"),
        (None, "th", "สวัสดี\n"),
    ],
)
def test_a_person_without_a_name_is_greeted_all_the_same(name: str | None, locale: str, greeting: str) -> None:
    assert render(attendee_name=name, locale=locale).text.startswith(greeting)


@pytest.mark.parametrize(("locale", "title"), [("en", "Your booking"), ("th", "การจองของคุณ")])
def test_a_booking_without_a_title_has_one_all_the_same(locale: str, title: str) -> None:
    message = render(title=" \r\n ", locale=locale)

    assert title in message.subject
    assert title in message.text
    assert title in message.html


def test_a_booking_without_a_place_names_none() -> None:
    message = render(location=None)

    assert "Where" not in message.text
    assert "LOCATION" not in message.ics


def test_the_same_booking_gives_the_same_message() -> None:
    first, second = render(), render()

    assert first == second
    assert as_bytes(first) == as_bytes(second)


def test_a_moved_booking_keeps_its_entry_in_the_calendar() -> None:
    (before,) = events_of(render())
    moved = render(starts_at=utc(2026, 12, 6, 9, 30), ends_at=None, updated_at=utc(2026, 12, 2, 0, 0))

    (after,) = events_of(moved)
    (other,) = events_of(render(id="b2"))
    assert after["UID"] == before["UID"]
    assert after["SEQUENCE"] > before["SEQUENCE"]
    assert other["UID"] != before["UID"]


def test_the_invitation_is_published_with_all_that_calendars_ask_for() -> None:
    message = render(title="Cut; wash, dry", location="Room 4\\5")

    calendar: Any = Calendar.from_ical(message.ics)
    (event,) = calendar.walk("VEVENT")
    assert (calendar["METHOD"], calendar["VERSION"]) == ("PUBLISH", "2.0")
    assert calendar["PRODID"]
    assert event["SUMMARY"] == "Cut; wash, dry"
    assert event["LOCATION"] == "Room 4\\5"
    assert event["ORGANIZER"] == "mailto:reminders@example.com"
    assert event["DTSTAMP"].dt == utc(2026, 12, 4, 9, 30)
    assert max(len(line.encode()) for line in message.ics.split("\r\n")) <= 75


def test_the_message_carries_the_sender_the_id_and_the_moment() -> None:
    message = render(settings=settings_with(email_from="Praxis Grün <hello@example.org>"))

    mail = message_from_bytes(as_bytes(message), policy=default)
    assert mail["From"] == "Praxis Grün <hello@example.org>"
    assert mail["Message-ID"] == "<1@dormouse.invalid>"
    assert mail["Date"] == "Fri, 04 Dec 2026 09:30:00 +0000"
