"""An instant as the attendee reads it: in their zone, their language and their calendar, with no doubt left.

    Saturday, 5 December 2026, 15:04 to 16:04 CET (UTC+01:00)

The offset from UTC stands beside the time: in the autumn night when the clock strikes twice, it says which
one is meant. Nothing here looks at the clock or the zone of the machine.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

from babel import Locale, UnknownLocaleError
from babel.dates import format_date, format_time
from babel.units import format_unit

from app.bookings.wording import LANGUAGES, Wording

FALLBACK = Locale("en", "GB")
BUDDHIST_YEARS_AHEAD = 543
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Zone:
    """A time zone; *name* is None when it stands in for one that is not known."""

    rules: tzinfo
    name: str | None


@dataclass(frozen=True)
class Reader:
    """Whom a text is for: *locale* of one of our languages, and the *calendar* that counts its years."""

    locale: Locale
    calendar: str

    @property
    def words(self) -> Wording:
        """The reader's language."""
        return LANGUAGES[self.locale.language]

    @property
    def counts_buddhist_years(self) -> bool:
        """Whether years are those of the Buddhist era: only ever in Thai."""
        return self.calendar == "buddhist" and self.locale.language == "th"


def find_zone(name: str | None, *instants: datetime) -> Zone:
    """Return the IANA zone *name* if it is one and can hold all *instants*, else UTC without a name."""
    unknown = Zone(UTC, None)
    if name is None or name not in _zone_names():
        return unknown
    rules = ZoneInfo(name)
    try:
        for instant in instants:
            instant.astimezone(rules)
    except OverflowError:
        return unknown
    return Zone(rules, name)


def find_locale(tag: str | None) -> Locale:
    """Return the locale of *tag* (th, en_US, en-GB) if we speak its language, else English.

    Bare English counts 24 hours and puts the day first, as most readers of English as a second language do.
    """
    subtags = (tag or "").replace("-", "_").split("_")
    for length in (3, 2, 1):
        try:
            locale = Locale.parse("_".join(subtags[:length]))
        except (ValueError, UnknownLocaleError):
            continue
        if locale.language in LANGUAGES:
            return FALLBACK if str(locale) == "en" else locale
    return FALLBACK


def spell_span(starts_at: datetime, ends_at: datetime | None, zone: Zone, reader: Reader) -> str:
    """Return both ends in full; the end is left out when it is not after the start."""
    start = starts_at.astimezone(zone.rules)
    day, time, label = _long_date(start, reader), _time(start, reader), _label(start)
    if ends_at is None or ends_at <= starts_at:
        return f"{day}, {time} {label}"
    end = ends_at.astimezone(zone.rules)
    end_time = f"{_time(end, reader)} {_label(end)}"
    if start.date() != end.date():
        return f"{day}, {time} {label} {reader.words.until} {_long_date(end, reader)}, {end_time}"
    if label != _label(end):
        return f"{day}, {time} {label} {reader.words.until} {end_time}"
    return f"{day}, {time} {reader.words.until} {end_time}"


def spell_briefly(starts_at: datetime, zone: Zone, reader: Reader) -> str:
    """Return the start for a subject line: 5 Dec 2026, 15:04 CET."""
    start = starts_at.astimezone(zone.rules)
    return f"{_short_date(start, reader)}, {_time(start, reader)} {_abbreviation(start) or _offset(start)}"


def spell_ahead(remind_before: timedelta, reader: Reader) -> str:
    """Return an offset in words: 24 hours and not 1 day, 2 days, 45 minutes."""
    if remind_before % DAY == timedelta(0) and remind_before > DAY:
        return _counted(remind_before // DAY, "duration-day", reader)
    if remind_before % HOUR == timedelta(0):
        return _counted(remind_before // HOUR, "duration-hour", reader)
    return _counted(round(remind_before.total_seconds() / 60), "duration-minute", reader)


@lru_cache(maxsize=1)
def _zone_names() -> frozenset[str]:
    """Return every IANA name, as tzdata lists them: a machine's own folder also holds `localtime`."""
    listed = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split()
    return frozenset(listed) - {"Factory"}


def _long_date(local: datetime, reader: Reader) -> str:
    if reader.counts_buddhist_years:
        return f"{_pattern(local, 'EEEEที่ d MMMM', reader)} พ.ศ. {local.year + BUDDHIST_YEARS_AHEAD}"
    return format_date(local, "full", locale=reader.locale)


def _short_date(local: datetime, reader: Reader) -> str:
    if reader.counts_buddhist_years:
        return f"{_pattern(local, 'd MMM', reader)} {local.year + BUDDHIST_YEARS_AHEAD}"
    return format_date(local, "medium", locale=reader.locale)


def _pattern(local: datetime, pattern: str, reader: Reader) -> str:
    return format_date(local, pattern, locale=reader.locale)


def _time(local: datetime, reader: Reader) -> str:
    """Return hours and minutes; American English puts a narrow space before PM that many fonts lack."""
    return format_time(local, "short", locale=reader.locale).replace("\u202f", " ")


def _label(local: datetime) -> str:
    abbreviation = _abbreviation(local)
    if abbreviation == "UTC":
        return abbreviation
    return f"{abbreviation} ({_offset(local)})" if abbreviation else f"({_offset(local)})"


def _abbreviation(local: datetime) -> str:
    """Return the zone's letters; many zones have none and give a number, which the offset says better."""
    name = local.tzname() or ""
    return name if name.isalpha() else ""


def _offset(local: datetime) -> str:
    minutes = round((local.utcoffset() or timedelta(0)).total_seconds() / 60)
    sign = "-" if minutes < 0 else "+"
    return f"UTC{sign}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


def _counted(number: int, unit: str, reader: Reader) -> str:
    return format_unit(number, unit, locale=reader.locale)
