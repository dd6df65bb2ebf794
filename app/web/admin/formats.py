"""How values look on a page: ages, durations, times and counts, in the reader's language."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from app.web.admin.speech import Speech

if TYPE_CHECKING:
    from markupsafe import Markup

MINUTE, HOUR, DAY = 60, 3600, 86_400
NOTHING = "\N{EM DASH}"
MINUTES_SHOWN_BELOW = 10 * HOUR
MINUTES_FROM = 100
TENTHS_BELOW = 10
PAYLOAD_CHARS = 40_000


def make_formats(speech: Speech, now: datetime) -> dict[str, Callable[..., str]]:
    """Return the filters of a page that is read at *now*."""

    def lasting(seconds: float | None) -> str:
        return NOTHING if seconds is None else spell_seconds(seconds, speech)

    def ago(moment: datetime | None) -> str:
        if moment is None:
            return NOTHING
        seconds = (now - moment).total_seconds()
        if abs(seconds) < 1:
            return speech.say("now")
        words = "{time} ago" if seconds > 0 else "in {time}"
        return speech.say(words, time=spell_seconds(abs(seconds), speech))

    def before(offset: timedelta) -> str:
        minutes = round(offset.total_seconds() / MINUTE)
        if minutes % 60 == 0:
            return speech.say("{n} h before", n=minutes // 60)
        return speech.say("{n} min before", n=minutes)

    return {"lasting": lasting, "ago": ago, "before": before, "utc": spell_utc, "number": spell_number}


def spell_seconds(seconds: float, speech: Speech) -> str:
    """Return a duration as a person would say it: 4.2 s, 15 min, 1 h 35 min, 30 h, 3 d."""
    if seconds >= 2 * DAY:
        return speech.say("{n} d", n=f"{round(seconds / DAY):,}")
    if round(seconds / MINUTE) >= HOUR // MINUTE:
        hours, minutes = divmod(round(seconds / MINUTE), 60)
        if minutes and seconds < MINUTES_SHOWN_BELOW:
            return speech.say("{h} h {m} min", h=hours, m=minutes)
        return speech.say("{n} h", n=round(seconds / HOUR))
    if seconds >= MINUTES_FROM or seconds == MINUTE:
        return speech.say("{n} min", n=round(seconds / MINUTE))
    if 0 < seconds < 1:
        return speech.say("{n} ms", n=max(1, round(seconds * 1000)))
    return speech.say("{n} s", n=f"{seconds:.1f}" if seconds < TENTHS_BELOW and seconds % 1 else f"{seconds:.0f}")


def spell_utc(moment: datetime | None) -> str:
    """Return *moment* to the second, in UTC, the same in every language."""
    return NOTHING if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def spell_number(number: int | None) -> str:
    """Return *number* with its thousands apart."""
    return NOTHING if number is None else f"{number:,}"


def spell_json(value: Any) -> str:
    """Return *value* as indented JSON in the reader's own letters, cut where nobody reads on."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return text if len(text) <= PAYLOAD_CHARS else text[:PAYLOAD_CHARS] + "\n…"


def mark_code(text: str) -> "Markup":
    """Return *text* with what stands between backticks as code, everything escaped."""
    from markupsafe import Markup, escape  # noqa: PLC0415 - it comes with Jinja

    pieces = [
        Markup("<code>{}</code>").format(piece) if place % 2 else escape(piece)
        for place, piece in enumerate(text.split("`"))
    ]
    return Markup("").join(pieces)
