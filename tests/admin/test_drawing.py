"""The chart and the formats: pure, so held without a database."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from app.web.admin.chart import HEIGHT, JOBS_HEIGHT, LEFT, WIDTH, draw_week, round_up
from app.web.admin.formats import make_formats, mark_code, spell_json, spell_seconds
from app.web.admin.history import BUCKET, BUCKETS, Bucket, Gap, Rhythm
from app.web.admin.speech import Speech

NOW = datetime(2026, 11, 30, 19, 20, tzinfo=UTC)
ENGLISH = Speech("en")
NOTHING = Rhythm(0, 0, None, None, None, [], [])


def week(**last: int) -> list[Bucket]:
    """Return seven empty days, but for what the last three hours saw."""
    empty = {"ticks": 0, "done": 0, "sent": 0, "retried": 0, "failed": 0}
    buckets = [Bucket(NOW - BUCKET * back, **empty, late_seconds=None) for back in range(BUCKETS, 0, -1)]
    return [*buckets[:-1], Bucket(buckets[-1].since, **empty | last, late_seconds=90.0)]


def test_an_empty_week_draws_no_bar_and_says_so() -> None:
    drawn = draw_week(week(), NOTHING, NOW, ENGLISH)

    assert drawn.is_empty
    assert (drawn.bars, drawn.strokes, drawn.gaps) == ([], "", [])


@pytest.mark.parametrize("number", [1, 7, 999, 10_000_000])
def test_bars_stand_on_each_other_and_stay_inside(number: int) -> None:
    drawn = draw_week(week(ticks=3, done=number, sent=number, failed=1), NOTHING, NOW, ENGLISH)

    assert [bar.name for bar in drawn.bars] == ["done", "sent", "failed"]
    assert all(lower.y >= upper.y for lower, upper in pairwise(drawn.bars))
    assert all(bar.x >= LEFT and bar.x + bar.width <= LEFT + WIDTH and 0 <= bar.y <= HEIGHT for bar in drawn.bars)
    assert sum(bar.height for bar in drawn.bars) <= JOBS_HEIGHT + 3


def test_a_gap_is_drawn_where_it_was_and_an_open_one_reaches_to_now() -> None:
    half = NOW - timedelta(days=3.5)
    gaps = [Gap(half, half + timedelta(hours=21), 75_600.0), Gap(NOW - timedelta(hours=5), None, 18_000.0)]

    drawn = draw_week(week(), Rhythm(2, 0, None, None, half, [], gaps), NOW, ENGLISH)

    assert [(box.x, box.width) for box in drawn.gaps] == [(LEFT + 420, 105.0), (LEFT + 815, 25.0)]
    assert drawn.gaps[1].title.endswith("no tick for 5 h")


def test_the_table_says_the_same_as_the_drawing() -> None:
    drawn = draw_week(week(ticks=3, done=7, sent=5, retried=2, failed=1), NOTHING, NOW, ENGLISH)

    day = drawn.table[-1]

    assert (day.label, day.ticks, day.done, day.sent, day.retried, day.failed) == ("Mon 30", 3, 7, 5, 2, 1)
    assert sum(day.done for day in drawn.table) == 7


@pytest.mark.parametrize(
    ("most", "top"), [(0, 2), (2, 2), (3, 5), (6, 10), (11, 20), (21, 50), (999, 1000), (1001, 2000)]
)
def test_a_scale_ends_at_a_round_number(most: int, top: int) -> None:
    assert round_up(most) == top


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "0 s"), (0.004, "4 ms"), (4.21, "4.2 s"), (9.0, "9 s"), (59.6, "60 s"), (60, "1 min"), (99, "99 s"),
        (100, "2 min"), (3569, "59 min"), (3599, "1 h"), (5700, "1 h 35 min"), (36_000, "10 h"), (172_799, "48 h"),
        (172_800, "2 d"), (8e9, "92,593 d"),
    ],
)  # fmt: skip
def test_a_duration_is_told_as_a_person_would(seconds: float, words: str) -> None:
    assert spell_seconds(seconds, ENGLISH) == words


def test_times_are_told_by_their_distance() -> None:
    ago = make_formats(ENGLISH, NOW)["ago"]

    assert ago(NOW - timedelta(minutes=15)) == "15 min ago"
    assert ago(NOW + timedelta(minutes=15)) == "in 15 min"
    assert (ago(NOW), ago(None)) == ("now", "\N{EM DASH}")


def test_code_is_marked_and_all_else_is_escaped() -> None:
    assert mark_code("run `a <b>` & <i>") == "run <code>a &lt;b&gt;</code> &amp; &lt;i&gt;"


def test_a_payload_is_shown_in_its_own_letters_and_has_an_end() -> None:
    assert spell_json({"name": "มะลิ"}) == '{\n  "name": "มะลิ"\n}'
    assert len(spell_json(["x" * 100_000])) < 50_000
