"""A suite that cannot see a bug is no evidence: every planted bug must be seen within 200 orders.

bug planted -> orders 0 to 199 -> the first that breaks a promise        bug taken out -> the same order is sound

The orders themselves are those of tests/evidence/explorer, where all of them are played without a bug.
"""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from app.db import Database, Link
from app.errors import DatabaseUnavailable
from app.web import bodies
from tests.evidence.explorer.explore import Explorer
from tests.evidence.planted.mutations import PLANTED, Plant
from tests.web import test_guard

ORDERS = 200
PATIENCE_SECONDS = 1.0
ACQUIRE_SECONDS = 0.2


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
async def test_a_planted_bug_breaks_a_promise_within_200_orders(
    plant: Plant, explorer: Explorer, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    explorer.patience = PATIENCE_SECONDS

    with monkeypatch.context() as patch:
        planted = plant(patch, explorer)
        if inspect.isawaitable(planted):
            await planted
        order = await explorer.search(range(ORDERS))

    assert order is not None, f"{ORDERS} orders did not see {plant.__doc__}"
    if not inspect.iscoroutinefunction(plant):  # those change the schema, which stays
        assert not (await explorer.play(order.seed)).problems
    record_property("seen at order", order.seed)
    print(f"{plant.__name__}: order {order.seed} ({order.scenario}): {order.problems[0]}")  # noqa: T201 - shown by -rP


async def test_the_same_orders_are_sound_without_a_planted_bug(explorer: Explorer) -> None:
    order = await explorer.search(range(20))

    assert order is None, order.story()


async def test_at_least_ten_bugs_are_planted() -> None:
    assert len({plant.__name__ for plant in PLANTED}) >= 10


async def _a_full_pool_answers_in_time(dsn: str) -> None:
    """Raise AssertionError unless who asks a full pool is told so within a second."""
    database = Database(dsn, pool_max=2)
    async with database.acquire(), database.acquire():
        started = time.monotonic()
        asking = asyncio.create_task(_take(database))
        await asyncio.wait({asking}, timeout=ACQUIRE_SECONDS + 1)
        took, in_time = time.monotonic() - started, asking.done()
        asking.cancel()
        await asyncio.wait({asking})
    await database.close()
    assert in_time, f"nobody was told for {took:.1f} s"
    assert isinstance(asking.exception(), DatabaseUnavailable)


async def _take(database: Database) -> None:
    async with database.acquire(ACQUIRE_SECONDS):
        pass


async def test_a_pool_that_is_waited_for_without_limit_is_seen(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await _a_full_pool_answers_in_time(dsn)

    monkeypatch.setattr(Link, "_limit", lambda _self, _limit: 3_600.0)

    with pytest.raises(AssertionError, match="nobody was told"):
        await _a_full_pool_answers_in_time(dsn)


async def test_a_body_cap_by_content_length_only_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    check: Callable[[bytes | None], Awaitable[None]] = (
        test_guard.test_a_body_over_the_cap_is_counted_whatever_was_declared
    )
    await check(None)
    counted = bodies._read_counted  # noqa: SLF001 - a mutation of this very function

    def uncounted(receive: Any, _limit: int) -> Awaitable[bytes]:
        return counted(receive, 2**40)

    monkeypatch.setattr(bodies, "_read_counted", uncounted)

    with pytest.raises(AssertionError):
        await check(None)
