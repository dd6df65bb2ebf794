"""The product does what the model does, whatever is done to both: 100 x 30 steps in each run, 5,000 x 50 at night."""

import os
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.evidence.model.bench import Bench, open_bench
from tests.evidence.model.machine import Machine
from tests.evidence.planted import mutations

UNHURRIED = tuple(HealthCheck)
# Bugs that need nobody else to show: the others are for the explorer.
SEEN_ALONE = (
    mutations.the_fence_stays_when_claimed,
    mutations.settle_by_id_only,
    mutations.settle_without_a_look_at_the_state,
    mutations.attempts_are_counted_on_failure,
    mutations.requeue_whatever_its_state,
    mutations.cancel_whatever_its_state,
    mutations.mark_before_send,
)


def _hold(bench: Bench, *, examples: int, steps: int, number: int = 0, phases: Sequence[Phase] = tuple(Phase)) -> None:
    """Play *examples* of at most *steps* rules each; the seed *number* says which."""

    @seed(number)
    class OnBench(Machine):
        pass

    OnBench.bench = bench
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=UNHURRIED,
        phases=phases,
    )
    run_state_machine_as_test(OnBench, settings=chosen)


def test_the_product_agrees_with_the_model(direct_dsn: str) -> None:
    with open_bench(direct_dsn) as bench:
        _hold(bench, examples=100, steps=30)


@pytest.mark.nightly
def test_the_product_agrees_with_the_model_all_night(direct_dsn: str) -> None:
    number = int(os.environ.get("MODEL_SEED", secrets.randbelow(2**32)))
    print(f"MODEL_SEED={number} plays the same histories again")  # noqa: T201 - the night's log must hold its seed

    with open_bench(direct_dsn) as bench:
        _hold(bench, examples=5_000, steps=50, number=number)

    print("5,000 histories of up to 50 steps agree with the model")  # noqa: T201 - the figure of the night


@pytest.mark.parametrize("plant", SEEN_ALONE, ids=lambda plant: plant.__name__)
def test_the_model_sees_a_planted_bug(
    plant: Callable[[pytest.MonkeyPatch, Any], None], direct_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_bench(direct_dsn) as bench, monkeypatch.context() as patch:
        plant(patch, None)

        with pytest.raises(AssertionError):
            _hold(bench, examples=300, steps=30, phases=[Phase.generate])
