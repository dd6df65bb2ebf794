"""The step summary shows what a person asks first; no text of the far side becomes markup or a command."""

import json
import re
from typing import Any

import pytest

from tests.ops.step import Answer, Start, Step

HOSTILE = "`</pre></details><script>alert(1)</script>|[x](y)\n\n::error::gotcha\n##[error]gotcha @everyone"
SUMMARY: dict[str, Any] = {
    "ok": True,
    "attention": [],
    "warnings": ["late"],
    "errors": [],
    "tick_id": "8b8f1e0c-0000-4000-8000-000000000000",
    "source": "github",
    "duration_ms": 812,
    "stopped_by": "empty",
    "jobs": {
        "claimed": 12,
        "done": 10,
        "retried": 1,
        "dead": 1,
        "snoozed": 0,
        "expired": 0,
        "lost": 0,
        "released": 0,
    },
    "reminders": {
        "planned": 5,
        "claimed": 5,
        "sent": 4,
        "retried": 0,
        "failed": 0,
        "uncertain": 0,
        "skipped": {"cancelled": 1, "moved": 1, "started": 0, "superseded": 0},
        "lost": 0,
        "released": 0,
    },
    "rescued": 0,
    "crashed": 0,
    "pruned": 3,
    "alerted": 0,
    "backlog": {
        "due": 2,
        "reminders_due": 0,
        "capped": False,
        "oldest_due_age_seconds": None,
        "dead": 3,
        "unknown_kinds": {"invoice.old": 4},
    },
    "more_due": False,
    "next_due_at": "2026-11-30T10:00:00Z",
    "lateness_seconds": {"p50": 0.4, "max": 3.1},
    "tick_gap_seconds": 903,
    "round_trips": 9,
}


def test_the_summary_shows_outcomes_backlog_lateness_and_the_raw_json(step: Step, far_side: Start) -> None:
    side = far_side(Answer(200, json.dumps(SUMMARY)))

    outcome = step.run(side.url)

    assert outcome.code == 0, outcome.output
    for row in [
        "## Tick: ok",
        "| planned | - | 5 |",
        "| claimed | 12 | 5 |",
        "| done, sent | 10 | 4 |",
        "| dead, failed | 1 | 0 |",
        "| skipped | - | 2 |",
        "| snoozed | 0 | - |",
        "| attention | - |",
        "| warnings | `late` |",
        "| backlog: jobs due | 2 |",
        "| backlog: dead | 3 |",
        "| backlog: unknown kinds | `invoice.old: 4` |",
        "| backlog: age of the oldest, seconds | - |",
        "| lateness max, seconds | 3.1 |",
        "| seconds since the tick before | 903 |",
        "| next due at | `2026-11-30T10:00:00Z` |",
        "| rescued, crashed, pruned, alerted | 0, 0, 3, 0 |",
        "| calls | 1 |",
        "<details><summary>Raw JSON</summary>",
        "&quot;round_trips&quot;:9",
    ]:
        assert row in outcome.summary


def test_what_needs_a_person_stands_first_with_its_meaning_and_a_link(step: Step, far_side: Start) -> None:
    attention = ["jobs_dead", "channel_suspended", "something_new"]
    side = far_side(Answer(200, json.dumps({**SUMMARY, "ok": False, "attention": attention})))

    outcome = step.run(side.url, PUBLIC_URL=" https://jobs.example.com/ ")

    head = outcome.summary.partition("| outcome |")[0]
    assert outcome.code == 1
    assert "| `jobs_dead` | A job will not run again: `dormouse jobs list --status dead`" in head
    assert "| `channel_suspended` | A channel lets nothing out: " in head
    assert "| `something_new` | See the raw JSON. |" in head
    assert "(https://jobs.example.com/admin)" in head
    _assert_harmless(outcome.summary, outcome.output)


@pytest.mark.parametrize("url", ["", "javascript:alert(1)", "https://x.example/)[y](z", "https://x.example/ <b>"])
def test_an_address_that_markdown_could_misread_is_no_link(step: Step, far_side: Start, url: str) -> None:
    side = far_side(Answer(200, json.dumps(SUMMARY)))

    outcome = step.run(side.url, PUBLIC_URL=url)

    assert outcome.code == 0, outcome.output
    assert "operator" not in outcome.summary
    assert "| needs a person |" not in outcome.summary


def test_hostile_text_in_a_summary_stays_text(step: Step, far_side: Start) -> None:
    hostile = {
        **SUMMARY,
        "ok": False,
        "attention": [HOSTILE],
        "errors": [{"section": HOSTILE}],
        "warnings": HOSTILE,
        "next_due_at": HOSTILE,
        "jobs": {"done": HOSTILE, "claimed": [HOSTILE]},
        "backlog": {"due": HOSTILE, "unknown_kinds": {HOSTILE: 1}},
        "lateness_seconds": HOSTILE,
    }
    side = far_side(Answer(200, json.dumps(hostile)))

    outcome = step.run(side.url)

    assert outcome.code == 1
    _assert_harmless(outcome.summary, outcome.output)


def test_hostile_text_in_an_error_page_stays_text(step: Step, far_side: Start) -> None:
    side = far_side(Answer(500, HOSTILE))

    outcome = step.run(side.url)

    assert outcome.code == 1
    assert "What answered" in outcome.summary
    _assert_harmless(outcome.summary, outcome.output)


def test_control_characters_and_nul_of_an_answer_reach_no_log(step: Step, far_side: Start) -> None:
    side = far_side(Answer(500, "a\x00b\x1b[31mred\x07"))

    outcome = step.run(side.url)

    assert outcome.code == 1
    assert "\x1b" not in outcome.output
    assert "\x07" not in outcome.output


def test_a_giant_summary_stays_below_the_limit_of_one_mebibyte(step: Step, far_side: Start) -> None:
    giant = {**SUMMARY, "errors": ["<" * 500 + str(number) for number in range(1500)]}
    side = far_side(Answer(200, json.dumps(giant)))

    outcome = step.run(side.url)

    assert outcome.code == 0, outcome.output
    assert len(outcome.summary.encode()) < 2**20
    assert len(outcome.output) < 20_000


def _assert_harmless(summary: str, log: str) -> None:
    outside_code = re.sub(r"`[^`\n]*`", "", summary)
    tags = set(re.findall(r"<[^>]*>", outside_code))
    assert tags <= {"<details>", "</details>", "<summary>", "</summary>", "<pre>", "</pre>"}
    assert outside_code.count("</details>") == 1
    outside_code = re.sub(r"<pre>.*?</pre>", "", outside_code, flags=re.DOTALL)
    assert "`" not in outside_code
    for row in (line for line in summary.splitlines() if line.startswith("|")):
        assert row.count("|") in {3, 4}
    commands = [line for line in log.splitlines() if line.lstrip().startswith("::")]
    assert [line for line in commands if not line.startswith("::error title=Tick::")] == []
    assert "##[" not in log
    assert "gotcha" not in outside_code
