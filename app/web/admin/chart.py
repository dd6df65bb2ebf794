"""Seven days as a drawing: three bands over one line of time, computed here, drawn by templates/chart.html.

    jobs by outcome (stacked bars) | lateness (bars on a scale of powers) | ticks (a stroke each) and gaps (blocks)

All numbers are units of the drawing, 0 at the top left. Colours are the stylesheet's: nothing here is inline style.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from app.web.admin.formats import spell_seconds
from app.web.admin.history import BUCKET, COLUMNS, DAYS, Bucket, Rhythm
from app.web.admin.speech import Speech

LEFT = 44
WIDTH = COLUMNS
JOBS_TOP, JOBS_HEIGHT = 8, 132
LATE_TOP, LATE_HEIGHT = 172, 62
TICKS_TOP, TICKS_HEIGHT = 266, 16
HEIGHT = 306
THIN = 1.5
SERIES = (("done", "Jobs done"), ("sent", "Reminders sent"), ("retried", "Retried"), ("failed", "Dead or failed"))
LATE_LINES = (1, 60, 3600, 86_400)
LATE_MOST = 3 * 86_400
TO = "\N{EN DASH}"


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle of class *name*; *title* is what a pointer that rests on it is told."""

    name: str
    x: float
    y: float
    width: float
    height: float
    title: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A level line at *y* with its *label*."""

    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A day's beginning at *x*."""

    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Day:
    """A day of the table that says the same in words."""

    label: str
    ticks: int
    done: int
    sent: int
    retried: int
    failed: int
    late_seconds: float | None


@dataclass(frozen=True, slots=True)
class Week:
    """The whole drawing, and the table beside it."""

    width: int = LEFT + WIDTH
    height: int = HEIGHT
    left: int = LEFT
    bars: list[Box] = field(default_factory=list)
    levels: list[Line] = field(default_factory=list)
    lates: list[Box] = field(default_factory=list)
    late_levels: list[Line] = field(default_factory=list)
    strokes: str = ""
    gaps: list[Box] = field(default_factory=list)
    days: list[Mark] = field(default_factory=list)
    table: list[Day] = field(default_factory=list)
    bands: dict[str, int] = field(default_factory=dict)
    series: tuple[tuple[str, str], ...] = SERIES
    is_empty: bool = False


def draw_week(buckets: Sequence[Bucket], rhythm: Rhythm, now: datetime, speech: Speech) -> Week:
    """Return the drawing of *buckets* and *rhythm* up to *now*, all times in UTC."""
    most = max((bucket.done + bucket.sent + bucket.retried + bucket.failed for bucket in buckets), default=0)
    top = round_up(most)
    return Week(
        bars=[box for place, bucket in enumerate(buckets) for box in _stack(place, bucket, top, speech)],
        levels=[Line(_rounded(_height_of(part * top, top)), _short(part * top)) for part in (0, 0.5, 1)],
        lates=[_late(place, bucket, speech) for place, bucket in enumerate(buckets) if bucket.late_seconds],
        late_levels=[Line(_rounded(_late_y(seconds)), spell_seconds(seconds, speech)) for seconds in LATE_LINES],
        strokes="".join(f"M{LEFT + column + 0.5:g} {TICKS_TOP}v{TICKS_HEIGHT}" for column in rhythm.columns),
        gaps=[_gap_box(gap.since, gap.until or now, gap.seconds, now, speech) for gap in rhythm.gaps],
        days=_days(now, speech),
        table=_table(buckets, speech),
        bands={
            "jobs": JOBS_TOP,
            "late": LATE_TOP,
            "late_end": LATE_TOP + LATE_HEIGHT,
            "ticks": TICKS_TOP,
            "end": TICKS_TOP + TICKS_HEIGHT,
        },
        is_empty=rhythm.ticks == 0,
    )


def round_up(most: int) -> int:
    """Return the end of a scale that holds *most*: an even number, 1, 2 or 5 times a power of ten."""
    top = 2
    while top < most:
        lead = int(str(top)[0])
        top = top * 5 // 2 if lead == 2 else top * 2  # noqa: PLR2004 - 2 to 5, 5 to 10, 1 to 2
    return top


def _stack(place: int, bucket: Bucket, top: int, speech: Speech) -> list[Box]:
    boxes, floor = [], float(JOBS_TOP + JOBS_HEIGHT)
    x, width = _column(place)
    for name, words in SERIES:
        number = getattr(bucket, name)
        if number == 0:
            continue
        height = max(THIN, JOBS_HEIGHT * number / top)
        floor -= height
        title = f"{_span(bucket)}: {speech.say(words)} {number:,}"
        boxes.append(Box(name, x, _rounded(max(floor, JOBS_TOP)), width, _rounded(height), title))
    return boxes


def _column(place: int) -> tuple[float, float]:
    step = WIDTH / (DAYS * 24 * 3600 / BUCKET.total_seconds())
    return _rounded(LEFT + place * step + 1), _rounded(step - 2)


def _height_of(number: float, top: int) -> float:
    return JOBS_TOP + JOBS_HEIGHT * (1 - number / top)


def _late(place: int, bucket: Bucket, speech: Speech) -> Box:
    x, width = _column(place)
    seconds = bucket.late_seconds or 0.0
    y = min(_late_y(seconds), LATE_TOP + LATE_HEIGHT - THIN)
    title = f"{_span(bucket)}: {spell_seconds(seconds, speech)}"
    return Box("late", x, _rounded(y), width, _rounded(LATE_TOP + LATE_HEIGHT - y), title)


def _late_y(seconds: float) -> float:
    share = math.log10(1 + min(seconds, LATE_MOST)) / math.log10(1 + LATE_MOST)
    return LATE_TOP + LATE_HEIGHT * (1 - share)


def _gap_box(since: datetime, until: datetime, seconds: float, now: datetime, speech: Speech) -> Box:
    start, end = _x(since, now), _x(until, now)
    title = f"{since.astimezone(UTC):%m-%d %H:%M} {TO} {until.astimezone(UTC):%m-%d %H:%M} UTC: " + speech.say(
        "no tick for {time}", time=spell_seconds(seconds, speech)
    )
    return Box("gap", _rounded(start), TICKS_TOP, _rounded(max(end - start, 1.0)), TICKS_HEIGHT, title)


def _x(moment: datetime, now: datetime) -> float:
    share = 1 - (now - moment) / timedelta(days=DAYS)
    return LEFT + WIDTH * min(max(share, 0.0), 1.0)


def _days(now: datetime, speech: Speech) -> list[Mark]:
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    starts = [midnight - timedelta(days=back) for back in range(DAYS)]
    return [Mark(_rounded(_x(start, now)), _day_name(start, speech)) for start in reversed(starts)]


def _day_name(moment: datetime, speech: Speech) -> str:
    from babel.dates import format_date  # noqa: PLC0415 - only a page pays for Babel

    return format_date(moment, "EEE d", locale=speech.code)


def _table(buckets: Sequence[Bucket], speech: Speech) -> list[Day]:
    """Sum the buckets by the UTC day in which each begins."""
    days: dict[str, list[Bucket]] = {}
    for bucket in buckets:
        days.setdefault(f"{bucket.since.astimezone(UTC):%Y-%m-%d}", []).append(bucket)
    return [
        Day(
            label=_day_name(held[0].since.astimezone(UTC), speech),
            ticks=sum(bucket.ticks for bucket in held),
            done=sum(bucket.done for bucket in held),
            sent=sum(bucket.sent for bucket in held),
            retried=sum(bucket.retried for bucket in held),
            failed=sum(bucket.failed for bucket in held),
            late_seconds=max((bucket.late_seconds for bucket in held if bucket.late_seconds is not None), default=None),
        )
        for held in days.values()
    ]


def _span(bucket: Bucket) -> str:
    since = bucket.since.astimezone(UTC)
    return f"{since:%m-%d %H:%M}{TO}{since + BUCKET:%H:%M} UTC"


def _short(number: float) -> str:
    for size, letter in ((1_000_000, "M"), (1000, "k")):
        if number >= size:
            return f"{number / size:g}{letter}"
    return f"{number:g}"


def _rounded(number: float) -> float:
    return round(number, 1)
