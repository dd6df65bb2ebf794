"""A reminder names the attendee's own time, and leaves no doubt which one."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.config import Settings
from tests.bookings.rendering import events_of, render, settings_with, utc

UNKNOWN = "UTC, because the booking's own time zone is not known to us"
BUDDHIST = settings_with(reminder_calendar="buddhist")


@pytest.fixture
def _denver(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/Denver")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("zone", "written"),
    [
        ("Asia/Bangkok", "Saturday 5 December 2026, 16:30 to 17:30 (UTC+07:00)"),
        ("Asia/Kathmandu", "Saturday 5 December 2026, 15:15 to 16:15 (UTC+05:45)"),
        ("Europe/Berlin", "Saturday 5 December 2026, 10:30 to 11:30 CET (UTC+01:00)"),
        ("America/New_York", "Saturday 5 December 2026, 04:30 to 05:30 EST (UTC-05:00)"),
        ("America/St_Johns", "Saturday 5 December 2026, 06:00 to 07:00 NST (UTC-03:30)"),
        ("Pacific/Kanton", "Saturday 5 December 2026, 22:30 to 23:30 (UTC+13:00)"),
        ("Europe/London", "Saturday 5 December 2026, 09:30 to 10:30 GMT (UTC+00:00)"),
        ("UTC", "Saturday 5 December 2026, 09:30 to 10:30 UTC"),
        ("Etc/GMT+5", "Saturday 5 December 2026, 04:30 to 05:30 (UTC-05:00)"),
    ],
)
def test_times_are_those_of_the_attendees_zone(zone: str, written: str) -> None:
    message = render(time_zone=zone)

    assert f"When: {written}" in message.text.replace("Saturday,", "Saturday")
    assert f"Time zone: {zone}" in message.text
    assert zone in message.html


@pytest.mark.parametrize(
    "zone",
    [
        "Asia/Beijing",
        "europe/berlin",
        "",
        None,
        "../../etc/passwd",
        "/etc/passwd",
        "localtime",
        "UTC+2",
        "Factory",
        "posixrules",
        "right/UTC",
        "posix/Europe/Berlin",
        "America",
        "tzdata.zi",
        "a" * 5000,
        "\x00",
        "\ud800",
        "Europe/Berlin\n",
    ],
)
def test_an_unusable_zone_falls_back_to_utc_and_says_so(zone: str | None) -> None:
    message = render(time_zone=zone)

    assert "09:30 to 10:30 UTC" in message.text
    assert f"Time zone: {UNKNOWN}" in message.text
    assert "time zone is not known to us" in message.html
    assert message.subject.endswith("09:30 UTC")


@pytest.mark.parametrize(
    ("starts_at", "written"),
    [
        (utc(2026, 10, 25, 0, 30), "02:30 CEST (UTC+02:00)"),
        (utc(2026, 10, 25, 1, 30), "02:30 CET (UTC+01:00)"),
        (utc(2026, 3, 29, 0, 30), "01:30 CET (UTC+01:00)"),
        (utc(2026, 3, 29, 1, 30), "03:30 CEST (UTC+02:00)"),
    ],
)
def test_the_hour_that_comes_twice_says_which_one_it_is(starts_at: datetime, written: str) -> None:
    message = render(starts_at=starts_at, ends_at=None, time_zone="Europe/Berlin")

    assert written in message.text
    assert written.split(" (", maxsplit=1)[0] in message.subject


def test_an_end_in_another_offset_carries_its_own() -> None:
    message = render(starts_at=utc(2026, 10, 25, 0, 30), ends_at=utc(2026, 10, 25, 1, 30), time_zone="Europe/Berlin")

    assert "02:30 CEST (UTC+02:00) to 02:30 CET (UTC+01:00)" in message.text


def test_an_end_on_another_day_carries_its_date() -> None:
    message = render(ends_at=utc(2026, 12, 6, 9, 0), time_zone="UTC")

    assert "09:30 UTC to Sunday" in message.text
    assert "6 December 2026, 09:00 UTC" in message.text


@pytest.mark.parametrize("ends_at", [None, utc(2026, 12, 5, 9, 30), utc(2026, 12, 5, 8, 0)])
def test_an_end_that_is_none_is_left_out(ends_at: datetime | None) -> None:
    message = render(ends_at=ends_at, time_zone="UTC")

    assert "09:30 UTC\n" in message.text
    assert "DTEND" not in message.ics


@pytest.mark.usefixtures("_denver")
def test_the_machines_zone_changes_nothing() -> None:
    in_denver = render(time_zone="Asia/Kathmandu")

    time_there = "15:15 to 16:15 (UTC+05:45)"
    assert time_there in in_denver.text
    assert "DTSTART:20261205T093000Z" in in_denver.ics
    assert in_denver.date == "Fri, 04 Dec 2026 09:30:00 +0000"


@pytest.mark.parametrize(
    ("zone", "starts_at"),
    [("Australia/Melbourne", utc(2027, 1, 11, 23, 0)), ("Europe/Bratislava", utc(2026, 10, 25, 1, 0))],
)
def test_the_invitation_holds_the_stored_instants_in_utc(zone: str, starts_at: datetime) -> None:
    message = render(starts_at=starts_at, ends_at=starts_at + timedelta(hours=1), time_zone=zone)

    (event,) = events_of(message)
    assert event["DTSTART"].dt == starts_at
    assert event["DTEND"].dt == starts_at + timedelta(hours=1)
    assert f"DTSTART:{starts_at:%Y%m%dT%H%M%SZ}" in message.ics
    assert "TZID" not in message.ics


@pytest.mark.parametrize(
    ("locale", "chosen", "written"),
    [
        ("th", None, "วันเสาร์ที่ 5 ธันวาคม ค.ศ. 2026, 16:30 น. ถึง 17:30 น. (UTC+07:00)"),
        ("th_TH", BUDDHIST, "วันเสาร์ที่ 5 ธันวาคม พ.ศ. 2569, 16:30 น. ถึง 17:30 น. (UTC+07:00)"),
        ("th-TH-u-ca-buddhist", None, "ค.ศ. 2026"),
        ("en", BUDDHIST, "5 December 2026"),
        ("en_US", None, "Saturday, December 5, 2026, 4:30 PM to 5:30 PM (UTC+07:00)"),
        ("en-GB", None, "5 December 2026, 16:30"),
        (None, None, "5 December 2026, 16:30"),
        ("", None, "5 December 2026, 16:30"),
        ("garbage!!", None, "5 December 2026, 16:30"),
        ("de_DE", None, "5 December 2026, 16:30"),
        ("../th", None, "5 December 2026, 16:30"),
        ("x" * 5000, None, "5 December 2026, 16:30"),
        ("\ud800", None, "5 December 2026, 16:30"),
        ("root", None, "5 December 2026, 16:30"),
    ],
)
def test_dates_are_written_in_the_attendees_language(locale: str | None, chosen: Settings | None, written: str) -> None:
    message = render(locale=locale, settings=chosen)

    assert written in message.text
    assert "2569" not in message.text or chosen is BUDDHIST


def test_a_thai_subject_counts_buddhist_years_when_asked() -> None:
    assert "5 ธ.ค. 2569, 16:30 น. UTC+07:00" in render(locale="th", settings=BUDDHIST).subject


@pytest.mark.parametrize(
    ("hours", "written"),
    [(24, "24 hours"), (1, "1 hour"), (0.75, "45 minutes"), (48, "2 days"), (36, "36 hours"), (25.5, "1530 minutes")],
)
def test_the_lead_is_told_in_hours_and_not_in_calendar_days(hours: float, written: str) -> None:
    message = render(hours=hours)

    assert f"was set for {written} before" in message.text.replace("1,530", "1530")


@settings(deadline=None)
@given(
    st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)),  # noqa: DTZ001 - bounds are naive
    st.sampled_from(["Asia/Bangkok", "Pacific/Kiritimati", "America/New_York", "Europe/Dublin", "nowhere"]),
    st.sampled_from(["en", "th", "en_US"]),
    st.sampled_from([settings_with(), BUDDHIST]),
)
def test_no_instant_that_can_be_stored_stops_a_reminder(
    starts_at: datetime, zone: str, locale: str, chosen: Settings
) -> None:
    message = render(starts_at=starts_at, ends_at=None, time_zone=zone, locale=locale, settings=chosen)

    assert "UTC" in message.text
