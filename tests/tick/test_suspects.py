"""A job that has crashed before gets its turn in every tick, however many wait that never did."""

import pytest

from app.jobs import Job, Kind
from app.tick import SUSPECT_PLACES
from tests.jobs.rows import put, tick_once

CRASHED = "UPDATE jobs SET crashes = 1, attempts = 1, run_at = now() WHERE id = $1"


async def toy(job: Job) -> None:
    """Be done."""


@pytest.mark.parametrize("batch", [2, 20])
async def test_a_backlog_does_not_starve_it(conn, services, batch):
    *_, crashed = await put(conn, 3 * batch)
    await conn.execute(CRASHED, crashed)

    summary = await tick_once(services({"toy": Kind(toy)}), jobs=batch)

    kept = min(SUSPECT_PLACES, batch // 2)
    assert await conn.fetchval("SELECT status FROM jobs WHERE id = $1", crashed) == "done"
    assert summary["jobs"]["done"] == batch - kept + 1
    assert summary["more_due"]


async def test_without_one_the_whole_batch_is_the_backlogs(conn, services):
    await put(conn, 60)

    summary = await tick_once(services({"toy": Kind(toy)}), jobs=20)

    assert summary["jobs"]["done"] == 20


async def test_those_that_crashed_get_no_more_than_the_batch(conn, services):
    for job_id in await put(conn, 30):
        await conn.execute(CRASHED, job_id)

    summary = await tick_once(services({"toy": Kind(toy)}), jobs=20)

    assert summary["jobs"]["done"] == 20
