"""One answer makes the step green, HTTP 200 with a summary that says ok; all else is red and says why."""

import contextlib
import json
import socket

import pytest

from tests.ops.step import SECRET, Answer, FarSide, Start, Step, serve

OK = json.dumps({"ok": True, "more_due": False})
NOT_OK = json.dumps({"ok": False, "attention": ["jobs_dead"], "more_due": False})


def test_a_tick_that_is_ok_is_green(step: Step, far_side: Start) -> None:
    side = far_side(Answer(200, OK))

    outcome = step.run(side.url)

    assert outcome.code == 0, outcome.output
    assert "## Tick: ok" in outcome.summary
    (request,) = side.requests
    assert (request["method"], request["path"]) == ("POST", "/api/cron/tick")
    assert request["headers"]["Authorization"] == f"Bearer {SECRET}"
    assert request["headers"]["X-Tick-Source"] == "github"
    assert request["headers"]["Content-Type"] == "application/json"
    assert json.loads(request["body"]) == {}


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Answer(301, headers={"Location": "/elsewhere"}), "HTTP 301: a redirect to http://127.0.0.1"),
        (Answer(302, headers={"Location": "/login"}), "HTTP 302: a redirect to http://127.0.0.1"),
        (
            Answer(307, headers={"Location": "https://www.example.com/"}),
            "HTTP 307: a redirect to https://www.example.com/",
        ),
        (Answer(308, headers={"Location": "https://www.example.com/"}), "HTTP 308: a redirect"),
        (Answer(204), "HTTP 204: something answered"),
        (Answer(201, OK), "HTTP 201: the tick did not run"),
        (Answer(200, ""), "HTTP 200, but not a tick's summary"),
        (Answer(200, "<!doctype html><title>Hello</title>"), "HTTP 200, but not a tick's summary"),
        (Answer(200, "{}"), "HTTP 200, but not a tick's summary"),
        (Answer(200, '{"ok": "true"}'), "HTTP 200, but not a tick's summary"),
        (Answer(200, "[true]"), "HTTP 200, but not a tick's summary"),
        (Answer(200, OK + OK), "HTTP 200, but not a tick's summary"),
        (Answer(401, '{"title": "Unauthorized"}'), "HTTP 401: CRON_SECRET here differs"),
        (Answer(403), "HTTP 403: refused before the tick"),
        (Answer(404, "not found"), "HTTP 404: no tick there. TICK_URL must end in /api/cron/tick"),
        (Answer(500, "boom"), "HTTP 500: the tick did not run"),
    ],
    ids=lambda value: f"{value.status}-{value.body[:12]}" if isinstance(value, Answer) else "",
)
def test_any_other_answer_is_red_at_once_and_says_why(step: Step, far_side: Start, answer: Answer, says: str) -> None:
    side = far_side(answer)

    outcome = step.run(side.url)

    assert outcome.code == 1
    assert f"::error title=Tick::{says}" in outcome.output
    assert says in outcome.summary
    assert "## Tick: failed" in outcome.summary
    assert answer.body[:12] in outcome.output
    assert len(side.requests) == 1


def test_ok_false_is_red_after_the_queue_was_drained(step: Step, far_side: Start) -> None:
    first = json.dumps({"ok": False, "attention": ["jobs_dead"], "more_due": True})
    side = far_side(Answer(200, first), Answer(200, OK))

    outcome = step.run(side.url)

    assert outcome.code == 1
    assert len(side.requests) == 2
    assert "needs a person" in outcome.output
    assert "`jobs_dead`" in outcome.summary


def test_ok_false_alone_is_red_and_prints_the_body(step: Step, far_side: Start) -> None:
    side = far_side(Answer(200, NOT_OK))

    outcome = step.run(side.url)

    assert outcome.code == 1
    assert '"attention": ["jobs_dead"]' in outcome.output
    assert "## Tick: needs a person" in outcome.summary


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_host_that_is_waking_is_tried_again(step: Step, far_side: Start, status: int) -> None:
    side = far_side(Answer(status, "starting"), Answer(status, "starting"), Answer(200, OK))

    outcome = step.run(side.url)

    assert outcome.code == 0, outcome.output
    assert len(side.requests) == 3


def test_a_host_that_drops_the_connection_is_tried_again(step: Step, far_side: Start) -> None:
    side = far_side(Answer(drop=True), Answer(200, OK))

    outcome = step.run(side.url)

    assert outcome.code == 0, outcome.output
    assert len(side.requests) == 2


def test_a_host_that_never_wakes_is_red_when_its_time_is_up(step: Step, far_side: Start) -> None:
    side = far_side(Answer(503, "no database"))

    outcome = step.run(side.url, WAKE_SECONDS="2", RETRY_PAUSE="1")

    assert outcome.code == 1
    assert "::error title=Tick::HTTP 503" in outcome.output
    assert 2 <= len(side.requests) <= 3


def test_a_service_that_listens_late_is_waited_for(step: Step) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    side = FarSide([Answer(200, OK)])

    with step.start(f"http://127.0.0.1:{port}/api/cron/tick", WAKE_SECONDS="30", RETRY_PAUSE="1") as process:
        assert process.stdout is not None
        assert "Not awake yet (HTTP 000, curl exit 7)" in process.stdout.readline()
        with serve(side, port):
            output, _ = process.communicate(timeout=30)

    assert process.returncode == 0, output
    assert len(side.requests) == 1


def test_a_cold_start_that_holds_the_call_is_waited_for(step: Step, far_side: Start) -> None:
    side = far_side(Answer(200, OK, after=1.5))

    outcome = step.run(side.url)

    assert outcome.code == 0, outcome.output
    assert len(side.requests) == 1


def test_a_call_that_hangs_ends_by_its_time_limit_and_is_red(step: Step, far_side: Start) -> None:
    side = far_side(Answer(hang=True))

    outcome = step.run(side.url, CALL_SECONDS="1")

    assert outcome.code == 1
    assert "::error title=Tick::No answer within the time limit" in outcome.output
    assert len(side.requests) == 1


def test_nothing_listening_is_red_and_names_the_address_as_the_suspect(step: Step) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        outcome = step.run(f"http://127.0.0.1:{reserved.getsockname()[1]}/api/cron/tick", WAKE_SECONDS="0")

    assert outcome.code == 1
    assert "::error title=Tick::No connection (curl exit 7)" in outcome.output


def test_a_host_that_takes_no_connection_is_tried_again_and_is_not_called_slow(step: Step) -> None:
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):  # a queue that is full lets further connections hang
            waiting = stack.enter_context(socket.socket())
            waiting.settimeout(0)
            waiting.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}/api/cron/tick"

        outcome = step.run(url, CONNECT_SECONDS="1", WAKE_SECONDS="2")

    assert outcome.code == 1
    assert "Not awake yet (HTTP 000, curl exit 28)" in outcome.output
    assert "::error title=Tick::No connection (curl exit 28)" in outcome.output
