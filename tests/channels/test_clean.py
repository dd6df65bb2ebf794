"""A stranger's text fits one line, and is cut only between what people see as characters."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.channels.clean import clip, clusters, one_line

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
WHOLE = [
    FAMILY,
    "\U0001f44d\U0001f3fd",
    "\U0001f1f9\U0001f1ed",
    "\u2764\ufe0f",
    "e\u0301",
    "ก\u0e33",
    "\u1112\u1161\u11ab",
]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (None, ""),
        ("", ""),
        (" \t\r\n ", ""),
        ("a\r\nBcc: b", "a Bcc: b"),
        ("a\x00b\x7fc\x85d\u2028e", "a b c d e"),
        ("\u202eabc\u202c \u2067d\u2069\u200f", "abc d"),
        ("half \ud83d pair", "half \ufffd pair"),
        (f"{FAMILY} ok", f"{FAMILY} ok"),
    ],
)
def test_a_text_fits_one_line(text: str | None, line: str) -> None:
    assert one_line(text) == line


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_fits_one_line_that_can_be_sent(text: str) -> None:
    line = one_line(text)

    line.encode()
    assert not [char for char in line if unicodedata.category(char) in {"Cc", "Zl", "Zp", "Cs"}]


@pytest.mark.parametrize("cluster", WHOLE)
@pytest.mark.parametrize("limit", range(3, 30))
def test_a_character_is_kept_whole_or_left_out(cluster: str, limit: int) -> None:
    cut = clip(cluster * 20, limit)

    assert len(cut) <= limit
    assert cut.endswith("\u2026")
    assert cut.removesuffix("\u2026") in {cluster * count for count in range(20)}


def test_a_letter_under_a_tower_of_marks_keeps_a_few_and_its_place() -> None:
    cut = clip("Z" + "\u0301" * 500 + "algo and more", 60)

    assert cut.startswith("Z\u0301")
    assert "algo" in cut


def test_a_short_text_is_not_touched() -> None:
    assert clip("short", 5) == "short"


@settings(deadline=None)
@given(st.text(), st.integers(2, 40))
def test_a_cut_never_exceeds_its_limit(text: str, limit: int) -> None:
    assert len(clip(text, limit)) <= max(limit, 1)


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Mn", "Mc", "Me"])))
def test_splitting_loses_nothing(text: str) -> None:
    assert "".join(clusters(text)) == text
