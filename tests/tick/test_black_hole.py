"""A database that falls silent costs a tick an error entry, never its deadline."""

import asyncio
import time
from dataclasses import replace

import pytest

from app.db import Database
from app.errors import DatabaseUnavailable
from app.jobs import Job, Kind, enqueue
from tests.bookings.shelf import HOUR, book, end_leases
from tests.tick.black_hole import black_hole
from tests.tick.ticking import still_running, tick_once

BUDGET = 1.0
# What each statement of a tick has in its text and no other has.
SURVEY, PLAN, CLAIM, SETTLE, RECORD = (
    b"has_leases_over",
    b"WITH configured",
    b"fence = fence + 1",
    b"SET status = 'done'",
    b"INSERT INTO ticks",
)


async def note(job: Job) -> None:
    """Take note."""


@pytest.mark.parametrize(
    "silence",
    [(PLAN, False), (CLAIM, False), (CLAIM, True), (SETTLE, False), (SETTLE, True), (RECORD, False)],
)
async def test_the_answer_comes_in_time_wherever_the_database_falls_silent(services, conn, dsn, server, silence):
    trigger, is_answer_lost = silence
    await enqueue(conn, "note.taken")
    async with black_hole(server, trigger=trigger, is_answer_lost=is_answer_lost) as hole:
        database = Database(hole.dsn(dsn))
        made = replace(services({"note.taken": Kind(note, timeout=0.3)}), database=database)

        started = time.monotonic()
        summary = await tick_once(made, seconds=BUDGET)
        took = time.monotonic() - started

        assert took < BUDGET + 1
        assert "deadline" in [error["section"] for error in summary["errors"]]
        assert (summary["ok"], summary["stopped_by"]) == (False, "deadline")
        assert still_running() == []
        await database.close()


async def test_what_was_under_way_is_done_by_a_later_tick(services, conn, dsn, server):
    ran = []

    async def remember(job: Job) -> None:
        ran.append(job.idempotency_key)

    kinds = {"note.taken": Kind(remember, timeout=0.3)}
    await enqueue(conn, "note.taken")
    async with black_hole(server, trigger=SETTLE) as hole:
        database = Database(hole.dsn(dsn))
        await tick_once(replace(services(kinds), database=database), seconds=BUDGET)
        await database.close()
    await end_leases(conn)

    summary = await tick_once(services(kinds))

    assert (summary["rescued"], summary["jobs"]["done"]) == (1, 1)
    assert len(ran) == 2
    assert len(set(ran)) == 1


async def test_a_database_that_says_nothing_from_the_start_is_unavailable_in_time(services, dsn, server):
    async with black_hole(server, is_dark=True) as hole:
        database = Database(hole.dsn(dsn), connect_timeout=1.0)
        made = replace(services(), database=database)

        started = time.monotonic()
        with pytest.raises(DatabaseUnavailable):
            await tick_once(made, seconds=10)
        took = time.monotonic() - started

        assert took < 2
        await database.close()


async def test_a_pooled_connection_that_fell_silent_is_given_up_for_a_new_one(services, dsn, server):
    async with black_hole(server, swallows_all=False, trigger=SURVEY) as hole:
        database = Database(hole.dsn(dsn), command_timeout=0.5)
        made = replace(services(), database=database)
        hole.trigger, trigger = None, hole.trigger
        await tick_once(made)
        hole.trigger = trigger

        ticking = asyncio.create_task(tick_once(made, seconds=5))
        await hole.went_dark()
        hole.trigger = None
        summary = await ticking

        assert summary["ok"] is True
        await database.close()


async def test_a_section_that_hears_nothing_is_reported_and_the_rest_run(services, conn, dsn, server):
    await enqueue(conn, "note.taken")
    await book(conn, "b", HOUR)
    async with black_hole(server, swallows_all=False, trigger=PLAN) as hole:
        database = Database(hole.dsn(dsn), command_timeout=0.5)
        made = replace(services({"note.taken": Kind(note, timeout=1)}), database=database)

        summary = await tick_once(made, seconds=10)

        assert [error["section"] for error in summary["errors"]] == ["plan"]
        assert summary["jobs"]["done"] == 1
        assert await conn.fetchval("SELECT count(*) FROM ticks") == 1
        await database.close()


async def test_a_pool_that_others_hold_is_unavailable_within_the_limit(services, dsn):
    database = Database(dsn, pool_max=2, connect_timeout=0.5)
    made = replace(services(), database=database)

    async with database.acquire(), database.acquire():
        started = time.monotonic()
        with pytest.raises(DatabaseUnavailable):
            await tick_once(made)
        took = time.monotonic() - started

    assert took < 1.5
    await database.close()
