"""A claim hands each due job to one tick only, and never more of them than were asked for."""

import asyncio

import pytest

from app.jobs.queue import claim, claim_reminders, claim_suspect
from tests.jobs.rows import LEASE, ids_of, put, row_of, statuses, whole_row


async def test_three_claimers_at_once_get_three_disjoint_sets(conn, connect):
    await put(conn, 300)
    claimers = [await connect() for _ in range(3)]

    taken = await asyncio.gather(*(claim(each, ["default"], ["toy"], 100, LEASE) for each in claimers))

    assert [len(rows) for rows in taken] == [100, 100, 100]
    assert len({job_id for rows in taken for job_id in ids_of(rows)}) == 300


async def test_a_claimer_passes_over_what_another_has_locked(conn, connect):
    await put(conn, 20)
    other = await connect()

    async with other.transaction():
        theirs = ids_of(await claim(other, ["default"], ["toy"], 10, LEASE))
        ours = ids_of(await claim(conn, ["default"], ["toy"], 20, LEASE))

    assert len(theirs) == len(ours) == 10
    assert not set(theirs) & set(ours)


async def test_a_claim_is_gone_with_the_transaction_that_made_it(conn, connect):
    await put(conn, 5)
    other = await connect()
    transaction = other.transaction()
    await transaction.start()
    await claim(other, ["default"], ["toy"], 5, LEASE)

    await transaction.rollback()

    assert await statuses(conn) == {"ready": 5}


@pytest.mark.parametrize("is_analyzed", [False, True])
async def test_the_limit_holds_with_the_planners_joins_off_and_stale_statistics(conn, connect, is_analyzed):
    odd = await connect()
    await odd.execute("ALTER TABLE jobs SET (autovacuum_enabled = off)")
    await put(odd, 5)
    if is_analyzed:
        await odd.execute("ANALYZE jobs")
    await put(odd, 1000)
    await put(odd, 300, queue="reminders", kind="booking.reminder")
    for name in ("enable_hashjoin", "enable_mergejoin", "enable_material"):
        await odd.execute(f"SET {name} = off")

    jobs = await claim(odd, ["default", "other"], ["toy"], 100, LEASE)
    reminders = await claim_reminders(odd, ["booking.reminder"], 100, LEASE)

    assert (len(jobs), len(reminders)) == (100, 100)
    assert (await statuses(odd))["running"] == 200


async def test_a_claim_counts_the_attempt_raises_the_fence_and_starts_the_lease(conn):
    (job_id,) = await put(conn)

    (held,) = await claim(conn, ["default"], ["toy"], 10, 45)
    row = await row_of(conn, job_id)

    assert (held.id, held.attempts, held.fence, held.crashes, held.kind) == (job_id, 1, 1, 0, "toy")
    assert (row["status"], row["attempts"], row["fence"]) == ("running", 1, 1)
    assert 40 < row["lease"] <= 45
    assert row["started_at"] is not None
    assert 0.5 < held.late_seconds < 60


async def test_a_kind_that_nobody_here_knows_is_left_untouched(conn):
    (job_id,) = await put(conn, kind="shop.closed")
    before = await whole_row(conn, job_id)

    taken = await claim(conn, ["default"], ["toy"], 10, LEASE)

    assert taken == []
    assert await whole_row(conn, job_id) == before


async def test_a_queue_that_nobody_here_serves_is_left_untouched(conn):
    (job_id,) = await put(conn, queue="video")
    before = await whole_row(conn, job_id)

    taken = await claim(conn, ["default"], ["toy"], 10, LEASE)

    assert taken == []
    assert await whole_row(conn, job_id) == before


async def test_unknown_kinds_at_the_head_do_not_hide_what_is_behind_them(conn):
    await put(conn, 500, kind="shop.closed", due_since=900)
    (job_id,) = await put(conn)

    taken = await claim(conn, ["default"], ["toy"], 10, LEASE)

    assert ids_of(taken) == [job_id]


async def test_a_job_is_not_claimed_before_its_time(conn):
    (later,) = await put(conn, due_since=-3600)
    before = await whole_row(conn, later)

    taken = await claim(conn, ["default"], ["toy"], 10, LEASE)

    assert taken == []
    assert await whole_row(conn, later) == before


@pytest.mark.parametrize("way", ["claim", "reminders", "suspect"])
async def test_a_job_whose_use_is_over_is_not_claimed(conn, way):
    queue = "reminders" if way == "reminders" else "default"
    (job_id,) = await put(conn, queue=queue)
    await conn.execute("UPDATE jobs SET expires_at = now(), crashes = $1", int(way == "suspect"))
    before = await whole_row(conn, job_id)

    taken = {
        "claim": await claim(conn, ["default"], ["toy"], 10, LEASE),
        "reminders": await claim_reminders(conn, ["toy"], 10, LEASE),
        "suspect": await claim_suspect(conn, ["default"], ["toy"], LEASE),
    }

    assert taken[way] == []
    assert await whole_row(conn, job_id) == before


async def test_a_job_that_will_expire_is_claimed_before_that(conn):
    (job_id,) = await put(conn)
    await conn.execute("UPDATE jobs SET expires_at = now() + interval '1 minute'")

    taken = await claim(conn, ["default"], ["toy"], 10, LEASE)

    assert ids_of(taken) == [job_id]


async def test_a_job_that_has_crashed_is_left_to_the_claim_for_suspects(conn):
    crashed, fresh = await put(conn, 2)
    await conn.execute("UPDATE jobs SET crashes = 1 WHERE id = $1", crashed)

    together = await claim(conn, ["default"], ["toy"], 10, LEASE)
    alone = await claim_suspect(conn, ["default"], ["toy"], LEASE)

    assert ids_of(together) == [fresh]
    assert ids_of(alone) == [crashed]


async def test_suspects_are_claimed_one_at_a_time(conn):
    await put(conn, 3)
    await conn.execute("UPDATE jobs SET crashes = 1")

    taken = [len(await claim_suspect(conn, ["default"], ["toy"], LEASE)) for _ in range(4)]

    assert taken == [1, 1, 1, 0]


@pytest.mark.parametrize("status", ["running", "done", "dead", "cancelled", "expired"])
async def test_only_ready_jobs_are_claimed(conn, status):
    (job_id,) = await put(conn)
    await conn.execute(
        "UPDATE jobs SET status = $1, locked_until = CASE WHEN $1 = 'running' THEN now() - interval '1 hour' END,"
        " finished_at = CASE WHEN $1 <> 'running' THEN now() END",
        status,
    )
    before = await whole_row(conn, job_id)

    taken = [
        *await claim(conn, ["default"], ["toy"], 10, LEASE),
        *await claim_suspect(conn, ["default"], ["toy"], LEASE),
    ]

    assert taken == []
    assert await whole_row(conn, job_id) == before


async def test_expired_leases_do_not_keep_fresh_jobs_from_running(conn):
    await put(conn, 100, due_since=900)
    await claim(conn, ["default"], ["toy"], 100, LEASE)
    await conn.execute("UPDATE jobs SET locked_until = now() - interval '1 hour'")
    fresh = await put(conn, 10)

    taken = await claim(conn, ["default"], ["toy"], 100, LEASE)

    assert sorted(ids_of(taken)) == sorted(fresh)


async def test_a_claim_of_nothing_takes_nothing(conn):
    await put(conn, 3)

    taken = [
        await claim(conn, ["default"], ["toy"], 0, LEASE),
        await claim(conn, [], ["toy"], 10, LEASE),
        await claim(conn, ["default"], [], 10, LEASE),
    ]

    assert taken == [[], [], []]
    assert await statuses(conn) == {"ready": 3}
