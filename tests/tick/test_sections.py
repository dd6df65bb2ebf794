"""A section of the tick that fails is reported, and the rest still run."""

import asyncio
import json

import pytest

from app.errors import SchemaBehind
from app.jobs import Job, Kind, NewJob, enqueue, enqueue_many
from tests.bookings.shelf import HOUR, book
from tests.tick.ticking import tick_once

BREAK = """
    CREATE FUNCTION break_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'secret words'; END $$
"""
# Each makes one section's statement fail, and no other.
BROKEN = {
    "rescue": "CREATE TRIGGER t BEFORE UPDATE ON jobs FOR EACH ROW"
    " WHEN (OLD.status = 'running' AND NEW.crashes > OLD.crashes) EXECUTE FUNCTION break_it()",
    "expire": "CREATE TRIGGER t BEFORE UPDATE ON jobs FOR EACH ROW"
    " WHEN (NEW.status = 'expired') EXECUTE FUNCTION break_it()",
    "plan": "CREATE TRIGGER t BEFORE INSERT ON reminders FOR EACH ROW EXECUTE FUNCTION break_it()",
    "jobs": "CREATE TRIGGER t BEFORE UPDATE ON jobs FOR EACH ROW"
    " WHEN (NEW.status = 'running' AND NEW.queue = 'default' AND NEW.crashes = 0) EXECUTE FUNCTION break_it()",
    "reminders": "CREATE TRIGGER t BEFORE UPDATE ON jobs FOR EACH ROW"
    " WHEN (NEW.status = 'running' AND NEW.queue = 'reminders') EXECUTE FUNCTION break_it()",
    "prune": "CREATE TRIGGER t BEFORE DELETE ON jobs FOR EACH ROW EXECUTE FUNCTION break_it()",
    "record": "CREATE TRIGGER t BEFORE INSERT ON ticks FOR EACH ROW EXECUTE FUNCTION break_it()",
}
A_LEASE_OVER = "UPDATE jobs SET status = 'running', locked_until = now() - interval '1 s' WHERE payload @> '{\"n\": 1}'"
ONE_TOO_LATE = "UPDATE jobs SET expires_at = now() - interval '1 s' WHERE payload @> '{\"n\": 2}'"
ONE_OLD = """
    UPDATE jobs SET status = 'done', finished_at = now() - interval '30 days' WHERE payload @> '{"n": 3}'
"""


async def note(job: Job) -> None:
    """Take note."""


async def fill(conn) -> None:
    """Give every section something to do."""
    await book(conn, "b", HOUR)
    await enqueue_many(conn, [NewJob("note.taken", {"n": n}) for n in range(5)])
    for change in (A_LEASE_OVER, ONE_TOO_LATE, ONE_OLD):
        await conn.execute(change)


def work_done(summary) -> dict[str, int]:
    """What each section did, in numbers."""
    return {
        "rescue": summary["rescued"],
        "expire": summary["jobs"]["expired"],
        "plan": summary["reminders"]["planned"],
        "jobs": summary["jobs"]["done"],
        "reminders": summary["reminders"]["sent"],
        "prune": summary["pruned"],
    }


async def test_a_whole_tick_does_a_bit_of_everything(services, conn):
    await fill(conn)

    summary = await tick_once(services({"note.taken": Kind(note)}))

    assert work_done(summary) == {"rescue": 1, "expire": 1, "plan": 1, "jobs": 3, "reminders": 1, "prune": 1}
    assert (summary["ok"], summary["errors"]) == (True, [])


@pytest.mark.parametrize("section", BROKEN)
async def test_a_section_that_fails_is_reported_and_the_rest_run(services, conn, section):
    await fill(conn)
    await conn.execute(BREAK)
    await conn.execute(BROKEN[section])

    summary = await tick_once(services({"note.taken": Kind(note)}))

    done = work_done(summary)
    lost = {"plan": {"plan", "reminders"}, "jobs": {"jobs"}}.get(section, {section})
    assert [error["section"] for error in summary["errors"]] == [section]
    assert summary["ok"] is False
    assert {name for name, count in done.items() if count == 0} == lost - {"record", "jobs"}
    assert done["jobs"] == {"rescue": 2, "jobs": 1}.get(section, 3)
    assert await conn.fetchval("SELECT count(*) FROM ticks") == (0 if section == "record" else 1)
    assert "secret words" not in json.dumps(summary)


async def test_jobs_run_though_the_book_is_gone(services, conn):
    await enqueue(conn, "note.taken")
    await conn.execute("ALTER TABLE bookings RENAME TO away")

    summary = await tick_once(services({"note.taken": Kind(note)}))

    assert [error["section"] for error in summary["errors"]] == ["plan"]
    assert summary["jobs"]["done"] == 1


@pytest.mark.parametrize("table", ["jobs", "ticks"])
async def test_without_the_tables_of_the_queue_the_schema_is_behind(services, conn, table):
    await conn.execute(f"ALTER TABLE {table} RENAME TO away")

    with pytest.raises(SchemaBehind):
        await tick_once(services())


async def test_a_handler_that_fails_is_no_failed_section(services, conn):
    async def fail(job: Job) -> None:
        raise ValueError(job.payload)

    await enqueue_many(conn, [NewJob("work.failed") for _ in range(100)])

    summary = await tick_once(services({"work.failed": Kind(fail)}))

    assert (summary["ok"], summary["errors"], summary["attention"]) == (True, [], [])
    assert summary["jobs"]["retried"] == 100


async def test_jobs_that_are_dead_need_a_person(services, conn):
    async def fail(job: Job) -> None:
        raise ValueError(job.payload)

    await enqueue_many(conn, [NewJob("work.failed", max_attempts=1) for _ in range(3)])

    summary = await tick_once(services({"work.failed": Kind(fail)}))

    assert (summary["ok"], summary["errors"], summary["attention"]) == (False, [], ["jobs_dead"])
    assert (summary["jobs"]["dead"], summary["backlog"]["dead"]) == (3, 3)


@pytest.mark.parametrize("raised", [SystemExit, KeyboardInterrupt, GeneratorExit, "cancelled"], ids=str)
async def test_a_handler_that_raises_anything_hurts_no_neighbour(services, conn, raised):
    async def work(job: Job) -> None:
        if job.payload["n"] == 5:
            raise asyncio.CancelledError if raised == "cancelled" else raised

    await enqueue_many(conn, [NewJob("work.odd", {"n": n}) for n in range(10)])

    summary = await tick_once(services({"work.odd": Kind(work)}))

    assert (summary["jobs"]["done"], summary["jobs"]["retried"]) == (9, 1)
    assert summary["errors"] == []


async def test_a_dead_reminder_of_a_killed_process_is_counted_once(services, conn):
    made = services(max_crashes=1)
    await book(conn, "b", HOUR)
    await tick_once(made, reminders=0)
    await book(conn, "c", HOUR)
    await conn.execute("UPDATE bookings SET status = 'cancelled' WHERE id = 'b'")
    await tick_once(made)
    await conn.execute(
        "UPDATE reminders SET status = 'planned', sent_at = NULL; UPDATE jobs SET status = 'running',"
        " finished_at = NULL, locked_until = now() - interval '1 s'"
    )

    first, second = await tick_once(made), await tick_once(made)

    assert (first["crashed"], first["reminders"]["failed"]) == (1, 1)
    assert (second["crashed"], second["reminders"]["failed"]) == (0, 0)
    assert await conn.fetchval("SELECT reason FROM reminders") == "crashed"
