"""Every text of the pages in every language: nothing is missing, nothing is left over, every gap is filled the same."""

import inspect
import re
import string
from pathlib import Path

import pytest

import app.web.admin
from app.bookings import why as booking_why
from app.jobs import why as job_why
from app.summary import SKIPS
from app.web.admin.jobs import STATUSES
from app.web.admin.speech import LANGUAGES, Speech, choose_speech
from app.web.admin.thai import THAI
from app.web.admin.ticks import OUTCOMES, REMINDER_OUTCOMES

FOLDER = Path(app.web.admin.__file__).parent
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
WHY = inspect.getsource(job_why) + inspect.getsource(booking_why)
RULE = re.compile(r'Rule\(\s*"([^"]+)"')
# Words that a page takes from a row, or from the machinery, and looks up by themselves.
FROM_ROWS = {
    *STATUSES, *OUTCOMES, *REMINDER_OUTCOMES, *SKIPS, "skipped", "later", "owed", "confirmed", "invalid_recipient",
    "cancelled by hand", "empty", "batch", "deadline", "shutdown", "jobs_dead", "reminders_failed", "reminders_missed",
    "unknown_kinds", "channel_suspended", "late", "tick_gap", "unserved_queues", "well", "remark", "look", "low",
    "normal", "high", "there is no job with this id", "there is no booking with this id",
    "there is no tick with this id",
}  # fmt: skip
PHRASES = {"Not Found", "Conflict", "Forbidden", "Too Many Requests", "Service Unavailable", "Internal Server Error"}


def texts() -> set[str]:
    """Return every text that stands in a template or a module as an argument of say or count."""
    found = set()
    for path in [*FOLDER.glob("templates/*.html"), *FOLDER.glob("*.py")]:
        source = path.read_text()
        found |= set(re.findall(r'\bsay\(\s*"([^"]+)"', source))
        for first, second in re.findall(r'\bcount\([^"]{0,80}"([^"]+)",\s*"([^"]+)"', source):
            found |= {first, second}
    return found


@pytest.mark.parametrize("code", [code for code in LANGUAGES if code != "en"])
def test_no_text_is_missing_in_any_language(code: str) -> None:
    rules = set(RULE.findall(WHY))

    missing = (texts() | FROM_ROWS | PHRASES | rules) - set(LANGUAGES[code][1]) - {job_why.WHAT_TO_DO}

    assert missing == set()


def test_no_text_is_kept_that_no_page_shows() -> None:
    sources = "".join(path.read_text() for path in FOLDER.rglob("*") if path.suffix in {".py", ".html"})
    sources = re.sub(r'"\s*\n\s*"', "", sources.replace((FOLDER / "thai.py").read_text(), ""))
    others = "".join(path.read_text() for path in FOLDER.parent.glob("*.py"))
    known = FROM_ROWS | PHRASES

    assert [text for text in THAI if text not in known and f'"{text}"' not in sources + others + WHY] == []


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_gap_of_a_text_is_in_its_translation(code: str) -> None:
    words = LANGUAGES[code][1]

    assert {text: gaps(text) for text in words} == {text: gaps(word) for text, word in words.items()}


def gaps(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize(
    ("cookie", "header", "code"),
    [
        ("", "", "en"),
        ("th", "", "th"),
        ("en", "th", "en"),
        ("xx", "th", "th"),
        ("", "th-TH,th;q=0.9,en;q=0.8", "th"),
        ("", "en;q=0.5, th;q=0.7", "th"),
        ("", "de-DE,de;q=0.9,th;q=0.1", "th"),
        ("", "de, fr", "en"),
        ("", "th;q=0, en", "en"),
        ("", "th;q=x", "en"),
        ("", "th;q=nan", "en"),
        ("", ",;,q=,", "en"),
        ("", "x" * 100_000 + ",th", "en"),
        ("../th", "", "en"),
    ],
)
def test_the_language_is_the_one_kept_else_the_first_of_ours_that_is_asked_for(
    cookie: str, header: str, code: str
) -> None:
    assert choose_speech(cookie, header) == Speech(code)


def test_one_and_many_are_told_apart_where_the_language_does() -> None:
    words = ("{n} job requeued.", "{n} jobs requeued.")

    assert [Speech("en").count(number, *words) for number in (0, 1, 2000)] == [
        "0 jobs requeued.",
        "1 job requeued.",
        "2,000 jobs requeued.",
    ]
