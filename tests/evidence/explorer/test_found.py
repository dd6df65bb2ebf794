"""What the explorer has found: each bug as the shortest order that showed it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from app.jobs import Kind, enqueue, operate, queue
from app.jobs.crew import Crew, Run
from app.jobs.queue import Verdict

WAITS = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database())"


@pytest.fixture
async def pair(direct_dsn: str) -> AsyncIterator[tuple[Any, Any, Any]]:
    """Two who meet, and one who watches."""
    opened = [await asyncpg.connect(direct_dsn, statement_cache_size=0) for _ in range(3)]
    yield opened[0], opened[1], opened[2]
    for connection in opened:
        connection.terminate()


async def _until_it_waits(watcher: Any) -> None:
    async with asyncio.timeout(10):
        while not await watcher.fetchval(WAITS):
            continue


@pytest.mark.parametrize(
    ("verb", "outcome", "then"), [("cancel", "released", "cancelled"), ("requeue", "dead", "ready")]
)
async def test_an_operator_who_waits_for_a_settlement_acts_on_what_it_left(
    pair: tuple[Any, Any, Any], verb: str, outcome: str, then: str
) -> None:
    tick, operator, watcher = pair
    job = await enqueue(tick, "note")
    [claimed] = await queue.claim(tick, ["default"], ["note"], 1, 60)

    async with tick.transaction():
        await queue.settle(tick, [Verdict(claimed.id, claimed.fence, outcome, 0.0, "it failed")])
        acting = asyncio.create_task(getattr(operate, verb)(operator, job.id))
        await _until_it_waits(watcher)
    await acting

    assert await watcher.fetchval("SELECT status FROM jobs") == then


async def test_a_crew_that_claims_a_job_again_renews_the_new_run_and_cuts_the_old(services: Any, conn: Any) -> None:
    begun, cut = asyncio.Event(), asyncio.Event()

    async def wait(job: Any) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cut.set()
            raise

    made = services({"wait": Kind(wait)})
    crew = Crew(made, made.kinds, made.database.link(), None)
    await enqueue(conn, "wait")
    reports: list[str] = []

    def report(_claimed: Any, outcome: str, _note: str | None) -> None:
        reports.append(outcome)

    [claimed] = await queue.claim(conn, ["default"], ["wait"], 1, 60)
    async with crew.at_work():
        old = crew.take(claimed, made.kinds["wait"], report, lambda _run: None, 0.0)
        running = asyncio.create_task(_run(crew, old))
        await begun.wait()

        new = crew.take(claimed._replace(fence=claimed.fence + 1), made.kinds["wait"], report, lambda _run: None, 0.0)
        await cut.wait()
        await asyncio.sleep(0)

        assert crew.runs == {claimed.id: new}
        await running
    assert reports == ["lost"]


async def _run(crew: Crew, run: Run) -> None:
    task = asyncio.current_task()
    assert task is not None
    await crew.run(run, task)
