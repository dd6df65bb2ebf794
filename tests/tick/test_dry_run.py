"""A dry run looks and changes nothing."""

from app.jobs import Job, Kind, NewJob, enqueue_many
from tests.bookings.shelf import HOUR, book
from tests.tick.ticking import outbox, tick_once

EVERYTHING = """
    SELECT (SELECT jsonb_agg(to_jsonb(jobs) ORDER BY id) FROM jobs)::text AS jobs,
        (SELECT count(*) FROM reminders) AS reminders, (SELECT count(*) FROM ticks) AS ticks,
        (SELECT count(*) FROM channels) AS channels
"""


async def note(job: Job) -> None:
    """Take note."""


async def test_a_dry_run_changes_no_row_and_sends_nothing(services, conn):
    made = services({"note.taken": Kind(note)})
    await enqueue_many(conn, [NewJob("note.taken", {"n": n}) for n in range(4)])
    await conn.execute(
        "UPDATE jobs SET status = 'running', locked_until = now() - interval '1 s' WHERE payload @> '{\"n\": 1}'"
    )
    await conn.execute("UPDATE jobs SET expires_at = now() - interval '1 s' WHERE payload @> '{\"n\": 2}'")
    await conn.execute(
        "UPDATE jobs SET status = 'done', finished_at = now() - interval '1 year' WHERE payload @> '{\"n\": 3}'"
    )
    await book(conn, "b", HOUR)
    before = await conn.fetchrow(EVERYTHING)

    summary = await tick_once(made, is_dry_run=True)

    assert await conn.fetchrow(EVERYTHING) == before
    assert outbox(made.settings) == []
    assert (summary["backlog"]["due"], summary["more_due"], summary["ok"]) == (2, True, True)
    assert (summary["jobs"]["claimed"], summary["reminders"]["planned"]) == (0, 0)


async def test_a_dry_run_costs_one_round_trip(services):
    summary = await tick_once(services(), is_dry_run=True)

    assert summary["round_trips"] == 1
