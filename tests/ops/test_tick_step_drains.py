"""The step calls again while more is due, and stops by count and by time."""

import json

from tests.ops.step import Answer, Start, Step

MORE = json.dumps({"ok": True, "more_due": True, "jobs": {"done": 100}})
LAST = json.dumps({"ok": True, "more_due": False, "jobs": {"done": 7}})


def test_it_calls_until_nothing_more_is_due(step: Step, far_side: Start) -> None:
    side = far_side(Answer(200, MORE), Answer(200, MORE), Answer(200, LAST))

    outcome = step.run(side.url)

    assert outcome.code == 0, outcome.output
    assert len(side.requests) == 3
    assert "| done, sent | 207 | - |" in outcome.summary


def test_what_is_due_for_ever_is_left_to_the_next_run_after_ten_calls(step: Step, far_side: Start) -> None:
    side = far_side(Answer(200, MORE))

    outcome = step.run(side.url)

    assert outcome.code == 0, outcome.output
    assert len(side.requests) == 10
    assert "::warning title=Tick::More is due after 10 calls" in outcome.output
    assert "More is due after 10 calls" in outcome.summary


def test_no_further_call_begins_when_the_time_is_nearly_up(step: Step, far_side: Start) -> None:
    side = far_side(Answer(200, MORE))

    outcome = step.run(side.url, RUN_SECONDS="30", MORE_SECONDS="31")

    assert outcome.code == 0, outcome.output
    assert len(side.requests) == 1


def test_a_later_call_that_fails_is_red_and_keeps_what_was_done(step: Step, far_side: Start) -> None:
    side = far_side(Answer(200, MORE), Answer(500, "boom"))

    outcome = step.run(side.url)

    assert outcome.code == 1
    assert "::error title=Tick::HTTP 500" in outcome.output
    assert "| done, sent | 100 | - |" in outcome.summary
    assert "## Tick: failed" in outcome.summary
