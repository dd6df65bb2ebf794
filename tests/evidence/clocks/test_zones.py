"""Ten years of every zone: offsets are counted on instants, and no two instants read alike.

The database does the arithmetic of reminders, so it is asked, in the session zone of each example.
"""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.bookings.when import Reader, _zone_names, find_locale, find_zone, spell_briefly, spell_span

ZONES = sorted(_zone_names())
FIRST, LAST = datetime(2026, 1, 1, tzinfo=UTC), datetime(2036, 1, 1, tzinfo=UTC)
READER = Reader(find_locale("en"), "gregorian")
HOUR = timedelta(hours=1)

# Both ways in which PLAN counts: a configured offset of a booking, and a booking's own list.
COUNTED = """
    SELECT $1::timestamptz - make_interval(secs => $2::text::float8) AS configured,
        lower(reminder_window($1::timestamptz, ARRAY[make_interval(secs => $2::text::float8)])) AS own,
        upper(reminder_window($1::timestamptz, ARRAY[make_interval(secs => $2::text::float8)])) AS starts_at,
        $1::timestamptz <= ($1::timestamptz - make_interval(secs => $2::text::float8))
            + make_interval(secs => $2::text::float8) AS is_due_at_that_instant
"""

instants = st.datetimes(FIRST.replace(tzinfo=None), LAST.replace(tzinfo=None), timezones=st.just(UTC))
offsets = st.integers(1, 366 * 24 * 60).map(lambda minutes: timedelta(minutes=minutes))


async def test_an_offset_is_counted_on_instants_whatever_the_zone_of_the_session(conn: Any) -> None:
    drawn: list[tuple[str, datetime, timedelta]] = []

    @settings(max_examples=300, database=None, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(ZONES), instants, offsets)
    def draw(zone: str, instant: datetime, offset: timedelta) -> None:
        drawn.append((zone, instant, offset))

    draw()
    for zone, instant, offset in drawn:
        async with conn.transaction():
            await conn.execute("SELECT set_config('timezone', $1, TRUE)", zone)
            row = await conn.fetchrow(COUNTED, instant, str(offset.total_seconds()))

        expected = (instant - offset, instant - offset, instant, True)
        assert tuple(row.values()) == expected, (zone, instant, offset)


def offset_at(instant: datetime, rules: ZoneInfo) -> timedelta:
    return instant.astimezone(rules).utcoffset() or timedelta(0)


def changes(zone: str) -> list[datetime]:
    """Return the hours of ten years before which a clock in *zone* was set back, to the hour."""
    rules = ZoneInfo(zone)
    weeks = [FIRST + timedelta(days=7 * n) for n in range((LAST - FIRST).days // 7)]
    found = []
    for before, after in pairwise(weeks):
        if before.astimezone(rules).utcoffset() != after.astimezone(rules).utcoffset():
            hours = [before + n * HOUR for n in range(7 * 24 + 1)]
            found += [late for early, late in pairwise(hours) if offset_at(late, rules) < offset_at(early, rules)]
    return found


def spelled(instant: datetime, zone: str) -> tuple[str, str]:
    """Return an instant as a reminder's text and as its subject name it."""
    found = find_zone(zone, instant)
    return spell_span(instant, None, found, READER), spell_briefly(instant, found, READER)


def test_the_hour_that_comes_twice_is_named_twice_in_every_zone_for_ten_years() -> None:
    alike, seen = [], 0
    for zone in ZONES:
        for change in changes(zone):
            for minutes in (0, 30):
                first, second = change - HOUR + timedelta(minutes=minutes), change + timedelta(minutes=minutes)
                seen += 1
                alike += [
                    (zone, first) for a, b in zip(spelled(first, zone), spelled(second, zone), strict=True) if a == b
                ]

    assert alike == []
    assert seen > 2_000


def test_two_instants_never_read_alike() -> None:
    @settings(max_examples=500, database=None, deadline=None, derandomize=True)
    @given(st.sampled_from(ZONES), instants, st.integers(1, 60 * 26))
    def check(zone: str, instant: datetime, minutes: int) -> None:
        other = instant + timedelta(minutes=minutes)

        assert spelled(instant, zone)[0] != spelled(other, zone)[0]

    check()
