"""How long a failed job waits: doubled at each failure, capped, spread, and never an error whatever the number."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.jobs import Exponential, Steps
from app.jobs.queue import settle
from app.jobs.runner import Ending, judge
from tests.jobs.rows import claim_one, put, row_of
from tests.jobs.runs import claimed_row, kind_of

SMALLEST, LARGEST = 0.5, 1.0


@pytest.fixture(params=[SMALLEST, LARGEST])
def jitter(request, monkeypatch):
    """The smallest or the largest draw that chance can make."""
    monkeypatch.setattr(random, "uniform", min if request.param == SMALLEST else max)
    return request.param


def test_the_wait_doubles_from_30_seconds_up_to_an_hour(jitter):
    waits = [Exponential().delay(failures) for failures in range(1, 12)]

    assert waits == [jitter * wait for wait in (30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600, 3600)]


@pytest.mark.parametrize("failures", [15, 46, 1023, 2000, 10**9, 2**63])
def test_any_number_of_failures_waits_the_cap_at_most(failures, jitter):
    assert Exponential().delay(failures) == 3600 * jitter


@settings(deadline=None, database=None)
@given(st.integers(min_value=-(2**64), max_value=2**64))
def test_the_wait_stays_between_half_and_whole_of_the_doubled_time(failures):
    longest = min(3600.0, 30.0 * 2.0 ** min(max(failures - 1, 0), 20))

    wait = Exponential().delay(failures)

    assert wait is not None
    assert longest / 2 <= wait <= longest


@settings(deadline=None, database=None)
@given(
    st.floats(min_value=1e-3, max_value=1e6),
    st.floats(min_value=1.0, max_value=1e6),
    st.integers(min_value=1, max_value=10_000),
)
def test_a_policy_of_ones_own_numbers_keeps_to_its_cap(base, factor, failures):
    cap = base * factor

    wait = Exponential(base, cap).delay(failures)

    assert wait is not None
    assert 0 < wait <= cap


@pytest.mark.parametrize(("base", "cap"), [(0, 1), (-1, 1), (2, 1), (1, float("inf")), (float("nan"), 1)])
def test_an_impossible_policy_is_refused_where_it_is_written(base, cap):
    with pytest.raises(ValueError, match="base <= cap"):
        Exponential(base, cap)


def test_steps_are_waited_in_turn_and_then_the_job_is_dead():
    steps = Steps(60, 300, 1800)

    waits = [steps.delay(failures) for failures in range(1, 6)]

    assert waits[3:] == [None, None]
    for wait, named in zip(waits[:3], (60, 300, 1800), strict=True):
        assert wait is not None
        assert named <= wait <= named * 1.1


def test_no_steps_at_all_is_one_attempt():
    assert Steps().delay(1) is None


@pytest.mark.parametrize("step", [-1, float("inf"), float("nan")])
def test_an_impossible_step_is_refused(step):
    with pytest.raises(ValueError, match="seconds"):
        Steps(60, step)


@pytest.mark.parametrize(
    ("policy", "max_attempts", "attempts"), [(Exponential(), 8, 8), (Steps(1, 1, 1), 8, 4), (Steps(1, 1, 1), 2, 2)]
)
def test_the_policy_and_the_rows_own_limit_both_bind(policy, max_attempts, attempts):
    kind = kind_of(retry=policy)
    outcomes = []
    for attempt in range(1, attempts + 1):
        verdict = judge(claimed_row(attempts=attempt, max_attempts=max_attempts), kind, Ending(RuntimeError("no")))
        assert verdict is not None
        outcomes.append(verdict.outcome)

    assert outcomes == ["retried"] * (attempts - 1) + ["dead"]


@pytest.mark.parametrize("attempts", [15, 46, 1023, 2000])
async def test_a_job_at_a_high_attempt_is_retried_at_the_cap(conn, attempts):
    (job_id,) = await put(conn, max_attempts=10_000)
    await conn.execute("UPDATE jobs SET attempts = $1", attempts - 1)
    held = await claim_one(conn)
    verdict = judge(held, kind_of(), Ending(RuntimeError("no")))
    assert verdict is not None

    await settle(conn, [verdict])

    row = await row_of(conn, job_id)
    assert (row["status"], row["attempts"]) == ("ready", attempts)
    assert 1790 < row["wait"] <= 3600


class Broken:
    """A policy of a user's own that does not keep its promise."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def delay(self, _failures: int) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


ANSWERS = [OverflowError("too large"), float("nan"), float("inf"), -5.0, "soon", SystemExit(3)]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: repr(answer)[:20])
def test_a_policy_that_fails_itself_is_replaced_by_the_usual_one(answer):
    verdict = judge(claimed_row(), kind_of(retry=Broken(answer)), Ending(RuntimeError("no")))

    assert verdict is not None
    assert verdict.outcome == "retried"
    assert 15 <= verdict.delay <= 30
