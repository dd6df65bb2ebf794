"""What an outage costs: twenty minutes kill nothing at eight attempts, and the crowd that failed comes back spread."""

import random

import pytest

from app.jobs import Job, Kind
from tests.jobs.rows import put, statuses, tick_once

OUTAGE_SECONDS = 20 * 60

ELAPSE = """
    UPDATE jobs
    SET run_at = run_at - make_interval(secs => $1)
    WHERE status = 'ready'
"""

NEXT_WAIT = """
    SELECT extract(epoch FROM min(run_at) - now())::float8
    FROM jobs
    WHERE status = 'ready'
"""

FULLEST_SECOND = """
    SELECT max(jobs)
    FROM (SELECT count(*) AS jobs FROM jobs WHERE status = 'ready' GROUP BY date_trunc('second', run_at)) AS second
"""


async def sit_out(conn, made) -> float:
    """Tick whenever something is due until the outage is over or nothing is left; return the seconds that passed."""
    elapsed = 0.0
    while True:
        await tick_once(made)
        wait = await conn.fetchval(NEXT_WAIT)
        if wait is None or elapsed + wait > OUTAGE_SECONDS:
            return elapsed
        elapsed += max(0.0, wait)
        await conn.execute(ELAPSE, wait + 0.01)


def smtp(is_up: list[bool]) -> Kind:
    async def send(job: Job) -> None:
        if not is_up:
            raise ConnectionRefusedError

    return Kind(send)


@pytest.fixture
def smallest_jitter(monkeypatch):
    """Chance at its worst: every wait is as short as it may be."""
    monkeypatch.setattr(random, "uniform", min)


async def test_smtp_down_for_20_minutes_kills_nothing_at_8_attempts(conn, services, smallest_jitter):
    is_up: list[bool] = []
    made = services({"toy": smtp(is_up)})
    await put(conn, 20, max_attempts=8)

    elapsed = await sit_out(conn, made)
    during = await statuses(conn)
    is_up.append(True)
    await conn.execute("UPDATE jobs SET run_at = now()")
    await tick_once(made)

    assert elapsed > 900
    assert during == {"ready": 20}
    assert await statuses(conn) == {"done": 20}


async def test_smtp_down_for_20_minutes_kills_everything_at_5_attempts(conn, services, smallest_jitter):
    made = services({"toy": smtp([])})
    await put(conn, 20, max_attempts=5)

    elapsed = await sit_out(conn, made)

    assert elapsed < 300
    assert await statuses(conn) == {"dead": 20}


async def test_the_last_of_8_attempts_comes_after_31_minutes_at_the_earliest(conn, services, smallest_jitter):
    made = services({"toy": smtp([])})
    await put(conn, 1)
    waited = 0.0

    while (await statuses(conn)) != {"dead": 1}:
        await tick_once(made)
        wait = await conn.fetchval(NEXT_WAIT) or 0.0
        waited += wait
        await conn.execute(ELAPSE, wait + 0.01)

    assert 31.74 * 60 < waited < 31.8 * 60


async def test_500_jobs_that_fail_together_come_back_spread(conn, services):
    random.seed(11)
    made = services({"toy": smtp([])}, job_concurrency=50)
    await put(conn, 500)
    fullest = []

    for _ in range(8):
        await tick_once(made, jobs=500)
        fullest.append(await conn.fetchval(FULLEST_SECOND) or 0)
        await conn.execute("UPDATE jobs SET run_at = now() WHERE status = 'ready'")

    assert await statuses(conn) == {"dead": 500}
    assert max(fullest) <= 500 * 0.05


async def test_100_a_tick_that_fail_together_come_back_spread_too(conn, services):
    random.seed(12)
    made = services({"toy": smtp([])})
    await put(conn, 500)

    for _ in range(5):
        await tick_once(made)

    assert await conn.fetchval("SELECT count(*) FROM jobs WHERE attempts = 1") == 500
    assert await conn.fetchval(FULLEST_SECOND) <= 500 * 0.05


async def test_a_few_failures_wait_no_longer_than_their_policy_says(conn, services):
    made = services({"toy": smtp([])})
    await put(conn, 3)

    await tick_once(made)

    assert 14 < await conn.fetchval(NEXT_WAIT) <= 30
