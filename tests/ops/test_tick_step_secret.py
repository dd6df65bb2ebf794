"""The secret is demanded, travels in a header file, and is never shown."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.ops.step import SECRET, Answer, Start, Step

OK = json.dumps({"ok": True, "more_due": False})


@pytest.mark.parametrize("secret", ["", "  \n"])
def test_an_unset_secret_is_red_and_calls_nobody(step: Step, far_side: Start, secret: str) -> None:
    side = far_side(Answer(200, OK))

    outcome = step.run(side.url, secret=secret)

    assert outcome.code == 1
    assert "::error title=Tick::The secret CRON_SECRET is not set" in outcome.output
    assert "CRON_SECRET is not set" in outcome.summary
    assert side.requests == []


def test_an_unset_address_is_red(step: Step) -> None:
    outcome = step.run("")

    assert outcome.code == 1
    assert "::error title=Tick::The secret TICK_URL is not set" in outcome.output


@pytest.mark.parametrize(
    "url",
    [
        "http://tick.example.com/api/cron/tick",
        "http://localhost:x@tick.example.com/api/cron/tick",
        "file:///etc/hostname",
        "tick.example.com",
        "--version",
    ],
)
def test_an_address_that_would_show_the_token_is_refused(step: Step, url: str) -> None:
    outcome = step.run(url)

    assert outcome.code == 1
    assert "must start with https://" in outcome.output


def test_white_space_around_a_pasted_secret_does_not_matter(step: Step, far_side: Start) -> None:
    side = far_side(Answer(200, OK))

    outcome = step.run(f" {side.url}\n", secret=f"\t{SECRET}\r\n")

    assert outcome.code == 0, outcome.output
    assert side.requests[0]["headers"]["Authorization"] == f"Bearer {SECRET}"


def test_a_line_break_inside_the_secret_adds_no_header(step: Step, far_side: Start) -> None:
    side = far_side(Answer(200, OK))

    outcome = step.run(side.url, secret=f"{SECRET}\nX-Evil: yes")

    assert outcome.code == 1
    assert side.requests == []
    assert SECRET not in outcome.output


@pytest.mark.parametrize("status", [200, 401, 500])
def test_a_service_that_echoes_the_secret_does_not_bring_it_into_the_log(
    step: Step, far_side: Start, status: int
) -> None:
    side = far_side(Answer(status, json.dumps({"ok": True, "errors": [f"you sent Bearer {SECRET}"], "x": SECRET})))

    outcome = step.run(side.url)

    assert len(side.requests) == 1
    assert "you sent Bearer ***" in outcome.output
    assert SECRET not in outcome.output
    assert SECRET not in outcome.summary


def test_the_secret_is_no_argument_of_any_program(
    step: Step, far_side: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = far_side(Answer(200, OK))
    seen = tmp_path / "arguments"
    spies = tmp_path / "bin"
    spies.mkdir()
    for name in ("curl", "jq", "sed", "tr", "mktemp", "rm"):
        spy = spies / name
        spy.write_text(f'#!/bin/sh\nprintf "%s\\n" "{name} $*" >>"{seen}"\nexec {shutil.which(name)} "$@"\n')
        spy.chmod(0o755)
    monkeypatch.setenv("PATH", f"{spies}:{os.environ['PATH']}")

    outcome = step.run(side.url)

    assert outcome.code == 0, outcome.output
    arguments = seen.read_text()
    assert "curl " in arguments
    assert "jq " in arguments
    assert SECRET not in arguments


def test_nothing_is_left_in_the_temporary_folder(step: Step, far_side: Start, tmp_path: Path) -> None:
    side = far_side(Answer(200, OK))
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    outcome = step.run(side.url, TMPDIR=str(scratch))

    assert outcome.code == 0, outcome.output
    assert list(scratch.iterdir()) == []
