"""A place that comes free while the lane is claiming is not left empty until the next job ends."""

import asyncio
from collections.abc import Sequence

from app.db import Connection
from app.jobs import Job, Kind, pump
from app.jobs.crew import Crew
from app.jobs.queue import Claimed, claim
from app.summary import Summary
from tests.jobs.rows import LEASE, put


async def test_what_came_free_during_a_claim_is_claimed_for_at_once(conn, services, monkeypatch):
    monkeypatch.setattr(pump, "LOOKAHEAD_SECONDS", 0.0)
    ends, limits, second = asyncio.Semaphore(0), [], asyncio.Event()
    third = asyncio.Event()

    async def toy(job: Job) -> None:
        await ends.acquire()

    async def slow_claim(connection: Connection, kinds: Sequence[str], limit: int) -> list[Claimed]:
        limits.append(limit)
        if len(limits) == 2:
            ends.release()
            ends.release()
            await second.wait()
        if len(limits) == 3:
            third.set()
        return await claim(connection, ["default"], kinds, limit, LEASE)

    await put(conn, 20)
    made = services({"toy": Kind(toy)})
    async with Crew(made, made.kinds, made.database.link(), None).at_work() as crew:
        pumping = asyncio.create_task(pump.Lane(crew, slow_claim, Summary("test"), 4, 20).pump())
        while len(crew.runs) < 4 or any(run.task is None for run in crew.runs.values()):  # noqa: ASYNC110 - a crew sets no event
            await asyncio.sleep(0.01)
        ends.release()
        while sum(run.task is not None for run in crew.runs.values()) > 1:  # noqa: ASYNC110 - likewise
            await asyncio.sleep(0.01)
        second.set()
        async with asyncio.timeout(5):
            await third.wait()
        for _ in range(20):
            ends.release()
        await pumping

    assert limits[:3] == [4, 1, 2]
