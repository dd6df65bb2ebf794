"""Why a booking was reminded of, or not yet, or never: every rule and its result, ending in what to do.

    booking + records + scene --explain--> status, start, offsets, recipient, each offset, channel, tick, what to do

`look` reads, `explain` is a pure function. No name and no address stands in a result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from app.bookings.book import Booking
from app.db import Connection
from app.errors import RecipientRefused
from app.jobs.why import WHAT_TO_DO, Rule, at, channel_rules, span, tick_rule

RECORDS_MOST = 50
EMAIL = "email"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A row of `reminders` beside its job."""

    starts_at: datetime
    remind_before: timedelta
    channel: str
    status: str
    reason: str | None
    sent_at: datetime | None
    job_id: int | None
    job_status: str | None
    job_run_at: datetime | None
    job_attempts: int | None
    job_error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What stands around a booking; *suspended* is until when, by channel."""

    now: datetime
    last_tick_at: datetime | None
    records: Sequence[Record]
    suspended: Mapping[str, datetime] = field(default_factory=dict)


SCENE = """
    SELECT now() AS now, (SELECT max(started_at) FROM ticks) AS last_tick_at,
        ARRAY(SELECT name FROM channels WHERE suspended_until > now() ORDER BY name) AS names,
        ARRAY(SELECT suspended_until FROM channels WHERE suspended_until > now() ORDER BY name) AS untils
"""

RECORDS = """
    SELECT reminders.starts_at, reminders.remind_before, reminders.channel, reminders.status, reminders.reason,
        reminders.sent_at, reminders.job_id, jobs.status AS job_status, jobs.run_at AS job_run_at,
        jobs.attempts AS job_attempts, jobs.last_error AS job_error
    FROM reminders LEFT JOIN jobs ON jobs.id = reminders.job_id
    WHERE reminders.booking_id = $1
    ORDER BY reminders.starts_at DESC, reminders.remind_before DESC, reminders.channel
    LIMIT $2
"""


async def look(connection: Connection, booking: Booking) -> Scene:
    """Read what stands around *booking*."""
    found = await connection.fetchrow(SCENE)
    assert found is not None  # noqa: S101 - a SELECT of scalars returns one row
    rows = await connection.fetch(RECORDS, booking.id, RECORDS_MOST)
    return Scene(
        now=found["now"],
        last_tick_at=found["last_tick_at"],
        records=[Record(**dict(row.items())) for row in rows],
        suspended=dict(zip(found["names"], found["untils"], strict=True)),
    )


def explain(booking: Booking, scene: Scene, configured: Sequence[timedelta]) -> list[Rule]:
    """Return every rule that decides over the reminders of *booking*; *configured* are the offsets without its own."""
    offsets = sorted(set(configured if booking.remind_before is None else booking.remind_before), reverse=True)
    is_over = booking.status != "confirmed" or booking.starts_at <= scene.now
    rules = [_status(booking), _start(booking, scene), _offsets(booking, offsets)]
    if not is_over and offsets:
        rules += [_recipient(booking)]
    rules += _earlier(booking, scene)
    rules += [rule for offset in offsets for rule in _offset(booking, scene, offset, offsets)]
    is_waiting = not is_over and not all(_is_settled(booking, scene, offset) for offset in offsets)
    if is_waiting:
        rules += [*channel_rules([EMAIL], scene.suspended, scene.now), tick_rule(scene.last_tick_at, scene.now)]
    advice = " ".join(dict.fromkeys(rule.advice for rule in rules if rule.is_blocking and rule.advice))
    return [
        *rules,
        Rule(WHAT_TO_DO, advice or ("Nothing: a tick does it when it is due." if is_waiting else "Nothing.")),
    ]


def _status(booking: Booking) -> Rule:
    if booking.status == "confirmed":
        return Rule("status", "confirmed")
    return Rule("status", f"{booking.status}: nobody is reminded of it", is_blocking=True)


def _start(booking: Booking, scene: Scene) -> Rule:
    if booking.starts_at > scene.now:
        return Rule("start", f"starts at {at(booking.starts_at)}, in {span(scene.now, booking.starts_at)}")
    ago = span(booking.starts_at, scene.now)
    return Rule("start", f"started at {at(booking.starts_at)}, {ago} ago: nothing goes out any more", is_blocking=True)


def _offsets(booking: Booking, offsets: Sequence[timedelta]) -> Rule:
    source = "REMINDER_OFFSETS" if booking.remind_before is None else "its own remind_before"
    if not offsets:
        advice = "Give it a remind_before, or leave that null, if it must be reminded of."
        return Rule("offsets", "none, by its own remind_before: it has no reminder", is_blocking=True, advice=advice)
    return Rule("offsets", f"{', '.join(_hours(offset) for offset in offsets)} before the start, by {source}")


def _recipient(booking: Booking) -> Rule:
    from app.bookings.render import check_recipient  # noqa: PLC0415 - a tick's cold start must not pay for it

    try:
        check_recipient(booking.attendee_email)
    except RecipientRefused as error:
        advice = "Put the booking again with an attendee_email that can be mailed."
        return Rule("recipient", f"its address cannot be mailed ({error})", is_blocking=True, advice=advice)
    return Rule("recipient", "its address can be mailed")


def _earlier(booking: Booking, scene: Scene) -> list[Rule]:
    """Tell of reminders for starts that the booking had before it was moved."""
    return [
        Rule("moved", f"for {at(record.starts_at)}, {_hours(record.remind_before)} before: {_outcome(record)}")
        for record in scene.records
        if record.starts_at != booking.starts_at
    ]


def _offset(booking: Booking, scene: Scene, offset: timedelta, offsets: Sequence[timedelta]) -> list[Rule]:
    name = f"reminder {_hours(offset)} before"
    records = _records(booking, scene, offset)
    if records:
        return [_recorded(name, record, scene) for record in records]
    opens_at = booking.starts_at - offset
    if booking.status != "confirmed" or booking.starts_at <= scene.now:
        return [Rule(name, "was never planned")]
    if opens_at > scene.now:
        return [Rule(name, f"is planned by the first tick after {at(opens_at)}, in {span(scene.now, opens_at)}")]
    nearer = min((other for other in offsets if booking.starts_at - other <= scene.now), default=offset)
    if nearer != offset:
        return [Rule(name, f"the one {_hours(nearer)} before is due as well and goes out alone")]
    return [Rule(name, f"owed since {at(opens_at)}: the next tick plans and sends it")]


def _recorded(name: str, record: Record, scene: Scene) -> Rule:
    result = _outcome(record)
    if record.status == "planned":
        return _planned(name, record, scene)
    if record.status == "failed":
        advice = f"Put right what failed, then run `dormouse jobs requeue {record.job_id}`."
        return Rule(name, result, is_blocking=True, advice=advice if record.job_id else "")
    if record.status == "uncertain":
        advice = (
            f"Ask the provider or the recipient whether it came; "
            f"if it did not, `dormouse jobs requeue {record.job_id}` sends it again."
        )
        return Rule(name, result, is_blocking=True, advice=advice)
    return Rule(name, result)


def _planned(name: str, record: Record, scene: Scene) -> Rule:
    job = f"job {record.job_id}"
    if record.job_status is None:
        return Rule(name, f"planned, but {job} is gone: the row was deleted by hand", is_blocking=True)
    if record.job_status == "ready" and record.job_run_at is not None and record.job_run_at > scene.now:
        wait = span(scene.now, record.job_run_at)
        error = f": {record.job_error}" if record.job_error else ""
        result = f"planned; {job} tries again in {wait}{error}"
        return Rule(name, result, is_blocking=True, advice=f"`dormouse jobs why {record.job_id}` tells more.")
    return Rule(name, f"planned; {job} is {record.job_status}")


def _outcome(record: Record) -> str:
    if record.status == "sent" and record.sent_at is not None:
        return f"sent at {at(record.sent_at)}"
    return f"{record.status}: {record.reason}" if record.reason else record.status


def _records(booking: Booking, scene: Scene, offset: timedelta) -> list[Record]:
    return [
        record for record in scene.records if record.starts_at == booking.starts_at and record.remind_before == offset
    ]


def _is_settled(booking: Booking, scene: Scene, offset: timedelta) -> bool:
    records = _records(booking, scene, offset)
    return bool(records) and all(record.status != "planned" for record in records)


def _hours(offset: timedelta) -> str:
    minutes = round(offset.total_seconds() / 60)
    return f"{minutes // 60} h" if minutes % 60 == 0 else f"{minutes} min"
