"""Every job that ended leaves one line, whole JSON without a secret, however many end together."""

import io
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from app.config import Settings
from app.log import MASK, Alike, get_logger, log_many, setup_logging

SECRET = 'sk-"quoted"-and-long-enough-to-be-one-of-ours'


@pytest.fixture
def written(settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What is logged from now on."""
    before, text = structlog.get_config(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", text)
    setup_logging(settings(cron_secret=SECRET, log_format="json"))
    yield text
    structlog.configure(**before)


def lines_of(written: io.StringIO, *fields: dict[str, Any]) -> list[dict[str, Any]]:
    log_many([Alike("info", {"event": "job.done", **each}, ("job_id",), [(1,), (2,)]) for each in fields])
    return [json.loads(line) for line in written.getvalue().splitlines()]


def test_lines_that_end_together_are_lines_of_their_own(written: io.StringIO) -> None:
    found = lines_of(written, {"error": None}, {"error": 'a "word"\nin the way, 100 %d'})

    assert [line["job_id"] for line in found] == [1, 2, 1, 2]
    assert [line["error"] for line in found] == [None, None, *['a "word"\nin the way, 100 %d'] * 2]
    assert {(line["level"], line["event"]) for line in found} == {("info", "job.done")}
    assert found[0]["timestamp"] == found[3]["timestamp"]
    assert found[0]["timestamp"].endswith("Z")


def test_a_line_of_many_is_the_line_that_one_alone_would_be(written: io.StringIO) -> None:
    structlog.contextvars.bind_contextvars(tick="7")
    log_many([Alike("error", {"event": "job.dead", "kind": "a.b", "error": "no"}, ("job_id", "ran_ms"), [(5, 12)])])
    get_logger().error("job.dead", kind="a.b", error="no", job_id=5, ran_ms=12)
    structlog.contextvars.clear_contextvars()

    many, one = (json.loads(line) for line in written.getvalue().splitlines())
    assert many | {"timestamp": 0} == one | {"timestamp": 0}


@pytest.mark.usefixtures("written")
def test_for_a_person_they_are_lines_of_their_own_too(
    settings: Callable[..., Settings], capsys: pytest.CaptureFixture[str]
) -> None:
    setup_logging(settings(cron_secret=SECRET, log_format="console"))
    log_many([Alike("info", {"event": "job.done", "kind": SECRET}, ("job_id",), [(1,), (2,)])])

    first, second = capsys.readouterr().err.splitlines()
    assert "job_id=1" in first
    assert "job_id=2" in second
    assert SECRET not in first + second


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"no {SECRET}!", f"no {MASK}!"),
        ("at https://me:pw@example.com/x", f"at https://{MASK}@example.com/x"),
        ("someone@example.com", "someone@example.com"),
    ],
    ids=["secret", "URL", "nothing"],
)
def test_a_secret_in_one_of_many_is_masked(written: io.StringIO, text: str, shown: str) -> None:
    found = lines_of(written, {"kind": "noop"}, {"kind": text}, {"kind": "noop"})

    assert [line["kind"] for line in found] == ["noop", "noop", shown, shown, "noop", "noop"]


@pytest.mark.parametrize("text", ["ไทย", "\x9b31m", "\ud83d", "\x00\x1b"], ids=["Thai", "C1", "half a pair", "control"])
def test_a_line_is_ascii_whatever_it_holds(written: io.StringIO, text: str) -> None:
    lines_of(written, {"kind": text})

    line = written.getvalue().splitlines()[0]
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["kind"] == text


def test_what_json_does_not_know_is_shown_all_the_same(written: io.StringIO) -> None:
    found, _ = lines_of(written, {"error": ValueError, "ran_ms": float("inf")})

    assert found["error"] == "<class 'ValueError'>"
    assert found["ran_ms"] == float("inf")


def test_no_lines_are_no_line(written: io.StringIO) -> None:
    assert lines_of(written) == []
