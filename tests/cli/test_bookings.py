"""`dormouse bookings` adds, shows and cancels; a wall time without its offset is refused."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.cli.conftest import Dormouse

ROW = "SELECT starts_at, attendee_email, time_zone, locale, remind_before, status FROM bookings WHERE id = $1"


async def test_what_is_added_is_there(dormouse: Dormouse, conn: Any) -> None:
    words = (
        "--id b1 --title Haircut --starts-at 2030-01-31T09:00+07:00 --name Mali --email mali@example.com "
        "--time-zone Asia/Bangkok --locale th --remind-before 24h,1h --json"
    )

    ended = await dormouse("bookings", "add", *words.split())

    row = await conn.fetchrow(ROW, "b1")
    assert row["starts_at"] == datetime(2030, 1, 31, 2, tzinfo=UTC)
    assert (row["attendee_email"], row["time_zone"], row["locale"]) == ("mali@example.com", "Asia/Bangkok", "th")
    assert row["remind_before"] == [timedelta(hours=24), timedelta(hours=1)]
    assert ended.json["remind_before"] == [86400, 3600]


async def test_list_show_and_cancel(dormouse: Dormouse, conn: Any) -> None:
    for hour in ("10", "09"):
        await dormouse("bookings", "add", "--id", f"at{hour}", "--starts-at", f"2030-01-31T{hour}:00Z")

    listed = await dormouse("bookings", "list", "--json")
    later = await dormouse("bookings", "list", "--after", "2030-01-31T09:00Z", "--after-id", "at09", "--json")
    table = await dormouse("bookings", "list", "--limit", "1")
    shown = await dormouse("bookings", "show", "at09")
    cancelled = await dormouse("bookings", "cancel", "at09", "--json")

    assert [row["id"] for row in listed.json] == ["at09", "at10"]
    assert [row["id"] for row in later.json] == ["at10"]
    assert "--after 2030-01-31T09:00:00+00:00 --after-id 'at09'" in table.out
    assert "confirmed" in shown.out
    assert cancelled.json["status"] == "cancelled"
    assert (await conn.fetchrow(ROW, "at09"))["status"] == "cancelled"


@pytest.mark.parametrize("verb", ["show", "cancel"])
async def test_no_such_booking_is_5(dormouse: Dormouse, dsn: str, verb: str) -> None:
    ended = await dormouse("bookings", verb, "nobody's")

    assert ended.code == 5
    assert "no booking" in ended.err


@pytest.mark.parametrize(
    "words",
    [
        "--starts-at 2030-01-31T09:00",
        "--starts-at soon",
        "--starts-at 2030-01-31T09:00Z --ends-at 2030-01-31T08:00Z",
        "--starts-at 2030-01-31T09:00Z --remind-before 1y",
        "--starts-at 2030-01-31T09:00Z --remind-before 400d",
        "--title x",
    ],
)
async def test_wrong_input_is_2(dormouse: Dormouse, conn: Any, words: str) -> None:
    ended = await dormouse("bookings", "add", *words.split())

    assert ended.code == 2, ended
    assert "Traceback" not in ended.err
    assert await conn.fetchval("SELECT count(*) FROM bookings") == 0
