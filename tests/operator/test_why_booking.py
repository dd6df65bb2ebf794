"""Why a booking was reminded of, or not yet, or never."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app import tick
from app.bookings.book import Booking, NewBooking, get_booking, put_booking
from app.bookings.why import Record, Scene, explain, look
from app.jobs.why import WHAT_TO_DO, Rule
from app.tick import Budget

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(hours=24)


def make_booking(**columns: Any) -> Booking:
    values: dict[str, Any] = dict.fromkeys(Booking.__slots__)
    values |= {"id": "b-1", "title": "Cut", "starts_at": NOW + 2 * HOUR, "status": "confirmed"}
    values |= {"attendee_email": "person@example.com", "created_at": NOW, "updated_at": NOW}
    return Booking(**values | columns)


def make_record(**columns: Any) -> Record:
    values: dict[str, Any] = dict.fromkeys(Record.__slots__)
    values |= {"starts_at": NOW + 2 * HOUR, "remind_before": DAY, "channel": "email", "status": "planned", "job_id": 9}
    return Record(**values | columns)


def why(
    booking: Booking | None = None, *records: Record, offsets: Sequence[timedelta] = (DAY,), **around: Any
) -> list[Rule]:
    values: dict[str, Any] = {"now": NOW, "last_tick_at": NOW - HOUR / 2, "records": records}
    return explain(booking or make_booking(), Scene(**values | around), offsets)


def told(rules: list[Rule]) -> dict[str, str]:
    return {rule.rule: rule.result for rule in rules}


def test_a_reminder_that_is_owed_goes_out_at_the_next_tick() -> None:
    rules = why()

    assert told(rules)["reminder 24 h before"].endswith("the next tick plans and sends it")
    assert told(rules)[WHAT_TO_DO] == "Nothing: a tick does it when it is due."
    assert not any(rule.is_blocking for rule in rules)


@pytest.mark.parametrize(
    ("columns", "rule", "says"),
    [
        ({"status": "cancelled"}, "status", "cancelled: nobody is reminded"),
        ({"starts_at": NOW - HOUR}, "start", "1 h ago: nothing goes out any more"),
        ({"remind_before": ()}, "offsets", "it has no reminder"),
        ({"attendee_email": None}, "recipient", "cannot be mailed"),
        ({"attendee_email": "nobody"}, "recipient", "cannot be mailed"),
    ],
)
def test_what_stands_in_the_way_of_a_booking_is_named(columns: dict[str, Any], rule: str, says: str) -> None:
    rules = why(make_booking(**columns))

    assert [found.rule for found in rules if found.is_blocking] == [rule]
    assert says in told(rules)[rule]


@pytest.mark.parametrize(
    ("columns", "says", "advice"),
    [
        ({"status": "sent", "sent_at": NOW - HOUR}, "sent at 2026-01-02 11:00:00+00:00", "Nothing."),
        ({"status": "skipped", "reason": "superseded"}, "skipped: superseded", "Nothing."),
        ({"status": "failed", "reason": "invalid_recipient"}, "failed: invalid_recipient", "dormouse jobs requeue 9"),
        ({"status": "uncertain", "reason": "the answer was lost"}, "uncertain: the answer", "Ask the provider"),
        ({"job_status": "running"}, "planned; job 9 is running", "Nothing: a tick"),
        (
            {"job_status": "ready", "job_run_at": NOW + HOUR, "job_error": "SMTP 421"},
            "planned; job 9 tries again in 1 h: SMTP 421",
            "dormouse jobs why 9",
        ),
        ({}, "job 9 is gone", "Nothing"),
    ],
)
def test_each_record_says_what_became_of_it(columns: dict[str, Any], says: str, advice: str) -> None:
    rules = why(None, make_record(**columns))

    assert says in told(rules)["reminder 24 h before"]
    assert advice in told(rules)[WHAT_TO_DO]


def test_an_offset_whose_hour_has_not_come_says_when() -> None:
    rules = why(offsets=(HOUR,))

    assert "2026-01-02 13:00:00+00:00, in 1 h" in told(rules)["reminder 1 h before"]


def test_of_two_offsets_that_are_due_the_nearest_goes_out_alone() -> None:
    rules = why(offsets=(DAY, 3 * HOUR))

    assert "3 h before is due as well and goes out alone" in told(rules)["reminder 24 h before"]
    assert "next tick" in told(rules)["reminder 3 h before"]


def test_a_moved_booking_tells_what_became_of_its_old_start() -> None:
    rules = why(None, make_record(starts_at=NOW - HOUR, status="skipped", reason="moved"))

    assert told(rules)["moved"] == "for 2026-01-02 11:00:00+00:00, 24 h before: skipped: moved"


def test_a_suspended_channel_and_a_silent_scheduler_are_named() -> None:
    rules = why(suspended={"email": NOW + HOUR}, last_tick_at=NOW - DAY)

    assert [rule.rule for rule in rules if rule.is_blocking] == ["channel", "tick"]
    assert all(word in told(rules)[WHAT_TO_DO] for word in ("channels resume email", "scheduler"))


async def test_the_records_are_read_with_their_jobs_and_name_no_person(conn: Any, services: Any) -> None:
    made = services()
    starts_at = datetime.now(UTC) + 2 * HOUR
    new = NewBooking(id="b-1", starts_at=starts_at, attendee_email="person@example.com", attendee_name="Ann Person")
    await put_booking(conn, new)
    await tick.run(made, Budget.from_settings(made.settings))
    booking = await get_booking(conn, "b-1")
    assert booking is not None

    rules = explain(booking, await look(conn, booking), made.settings.reminder_offsets)

    assert told(rules)["reminder 24 h before"].startswith("sent at ")
    assert not any(word in str(rules) for word in ("Person", "person@", "Ann"))
