"""Many jobs at once: what fits a filter is requeued or cancelled, step by step; a dry run changes nothing."""

import asyncio
from typing import Any

import asyncpg
import pytest

from app.errors import BadInput
from app.jobs.lists import Filter
from app.jobs.operate import cancel_many, requeue_many
from tests.operator.rows import add_job

STATES = "SELECT status, count(*) FROM jobs GROUP BY status ORDER BY status"


async def test_a_dry_run_names_the_jobs_and_changes_none(conn: Any) -> None:
    ids = [await add_job(conn, status="dead") for _ in range(3)]

    bulk = await requeue_many(conn, Filter(), is_dry_run=True)

    assert (bulk.ids, bulk.next_id) == (ids[::-1], None)
    assert [tuple(row) for row in await conn.fetch(STATES)] == [("dead", 3)]


async def test_only_dead_jobs_that_fit_are_requeued_with_all_attempts_back(conn: Any) -> None:
    wanted = await add_job(conn, "mail.sent", "dead", last_error="SMTP 421", attempts=8, crashes=1, fence=8)
    await add_job(conn, "mail.sent", "dead", last_error="other")
    await add_job(conn, "mail.sent", "done")

    bulk = await requeue_many(conn, Filter(error="smtp", kind="mail.sent"))

    assert bulk.ids == [wanted]
    row = await conn.fetchrow("SELECT status, attempts, crashes, fence, last_error FROM jobs WHERE id = $1", wanted)
    assert tuple(row) == ("ready", 0, 0, 8, "SMTP 421")
    assert [tuple(row) for row in await conn.fetch(STATES)] == [("dead", 1), ("done", 1), ("ready", 1)]


async def test_only_ready_jobs_are_cancelled(conn: Any) -> None:
    ids = [await add_job(conn, status=status) for status in ("ready", "running", "dead", "done")]

    bulk = await cancel_many(conn, Filter())

    assert bulk.ids == ids[:1]


async def test_steps_reach_every_job_and_end(conn: Any) -> None:
    ids = [await add_job(conn, status="dead") for _ in range(5)]
    seen, before = [], None

    while True:
        bulk = await requeue_many(conn, Filter(), before_id=before, limit=2)
        seen += bulk.ids
        if (before := bulk.next_id) is None:
            break

    assert seen == ids[::-1]


@pytest.mark.parametrize(("change", "status"), [(requeue_many, "done"), (cancel_many, "dead")])
async def test_a_status_that_cannot_be_changed_is_refused(conn: Any, change: Any, status: str) -> None:
    with pytest.raises(BadInput, match="only"):
        await change(conn, Filter(status=status))


async def test_two_operators_at_once_requeue_each_job_once(conn: Any, dsn: str) -> None:
    ids = [await add_job(conn, status="dead") for _ in range(200)]
    second = await asyncpg.connect(dsn, statement_cache_size=0)

    one, two = await asyncio.gather(requeue_many(conn, Filter()), requeue_many(second, Filter()))

    await second.close()
    assert sorted(one.ids + two.ids) == ids
