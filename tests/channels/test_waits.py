"""A far side that names a delay is believed, within a day; one that babbles is not."""

import pytest

from app.channels.waits import hinted_wait, retry_after

SENT = "Mon, 30 Nov 2026 10:00:00 GMT"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        ("120", 120),
        (" 30 ", 30),
        ("1.5", 1.5),
        ("86400", 86_400),
        ("86401", 86_400),
        ("999999999", 86_400),
        ("Mon, 30 Nov 2026 10:00:30 GMT", 30),
        ("Monday, 30-Nov-26 10:00:30 GMT", 30),
        ("Mon, 30 Nov 2026 11:00:30 +0100", 30),
        ("Mon, 30 Nov 2026 09:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400),
    ],
)
def test_seconds_and_dates_are_understood(value: str, seconds: float) -> None:
    assert retry_after(value, SENT) == seconds


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "soon",
        "-1",
        "+1",
        "1e3",
        "inf",
        "nan",
        "0x10",
        "٣",
        "1,5",
        "9" * 5000,
        "30 seconds",
        "2026-11-30",
        "\x00",
    ],
)
def test_anything_else_is_ignored(value: str | None) -> None:
    assert retry_after(value, SENT) is None


@pytest.mark.parametrize("date", [None, "", "yesterday", "Mon, 30 Nov 2026 10:00:00"])
def test_a_date_without_a_date_to_measure_it_by_is_ignored(date: str | None) -> None:
    assert retry_after("Mon, 30 Nov 2026 10:00:30 GMT", date) is None


def test_the_hint_comes_before_the_reset_and_is_a_second_at_least() -> None:
    assert hinted_wait({"retry-after": "5", "ratelimit-reset": "9"}) == 5
    assert hinted_wait({"retry-after": "x", "ratelimit-reset": "9"}) == 9
    assert hinted_wait({"retry-after": "0"}) == 1
    assert hinted_wait({}) is None
