"""The sorts of values that requests hold, each refused in one sentence when it does not fit.

Everything is strict: a number is no string, a time has an offset, a text has an end.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from app.config import parse_offsets

FIRST_YEAR = 1970
OFFSETS = 10
OFFSET_CHARS = 20
ZONE_CHARS = 100
INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
    r"([Zz]|[+-][0-9]{2}:?[0-9]{2})?"
)
# Not `localtime`, which is the server's own, and not the trees with leap seconds: they name no zone.
ZONE = re.compile(r"(?!posix/|right/|localtime|posixrules|Factory)[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,2}")


class Body(BaseModel):
    """A JSON object whose members are all known and of the very type that is named."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)


def read_instant(value: Any) -> datetime:
    """Return the moment that *value* names, in UTC; ValueError for a number, a date or a naive time."""
    match = INSTANT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("write a time as 2026-03-29T09:30:00+02:00, or with Z for UTC")
    if match[1] is None:
        raise ValueError("the time has no offset: end it with Z or one such as +02:00")
    try:
        moment = datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("there is no such time") from None
    if moment.year < FIRST_YEAR:
        raise ValueError(f"times before {FIRST_YEAR} are not taken")
    return moment


def check_zone(name: str) -> str:
    """Return *name* when it is an IANA time zone known here; raise ValueError otherwise."""
    try:
        if ZONE.fullmatch(name):
            ZoneInfo(name)
            return name
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass  # told below, as for a name of the wrong shape
    raise ValueError("this is not the name of a time zone, such as Europe/Berlin or UTC")


def read_offset(value: Any) -> timedelta:
    """Return the duration that *value* names, `24h` or `30m` or `2d`; raise ValueError otherwise."""
    if not isinstance(value, str) or len(value) > OFFSET_CHARS or "," in value:
        raise ValueError("write an offset as 24h; the units are m, h and d")
    return parse_offsets(value)[0]


def write_offset(offset: timedelta) -> str:
    """Return *offset* as `read_offset` takes it: in hours where they are whole, in minutes otherwise."""
    minutes = round(offset.total_seconds() / 60)
    return f"{minutes // 60}h" if minutes % 60 == 0 else f"{minutes}m"


Instant = Annotated[datetime, BeforeValidator(read_instant), WithJsonSchema({"type": "string", "format": "date-time"})]
Offset = Annotated[timedelta, BeforeValidator(read_offset), WithJsonSchema({"type": "string", "examples": ["24h"]})]
Offsets = Annotated[list[Offset], Field(max_length=OFFSETS)]
Zone = Annotated[str, Field(max_length=ZONE_CHARS), AfterValidator(check_zone)]
Locale = Annotated[str, Field(max_length=35, pattern=r"^[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8}){0,4}$")]
Email = Annotated[str, Field(min_length=3, max_length=320, pattern=r"^[^\s@]+@[^\s@]+$")]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Line = Annotated[str, Field(max_length=1000)]
