"""The server keeps the plans of our statements where no pooler stands between, and no plan that has become slow."""

from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from app import db
from app.connection import CountedConnection
from app.db import Database, is_transient
from app.jobs import Kind, enqueue
from tests.tick.ticking import tick_once

KEPT = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%' || $1 || '%'"
ENQUEUED = "INSERT INTO jobs (kind) SELECT 'toy' FROM generate_series(1, $1::int)"
MANY, EACH = 40_000, 8_000
SCANS = 75  # of 25 when every statement is planned each time, as the table is still small; 180 with stale plans
READ_WHOLE = "SELECT coalesce(seq_tup_read, 0) FROM pg_stat_all_tables WHERE relname = 'jobs'"


async def do_nothing(_job: object) -> None:
    """Be done at once."""


async def kept(database: Database, part: str) -> int:
    """Return how many statements that hold *part* the server keeps for the connection that is lent next."""
    async with database.acquire() as connection:
        found: int = await connection.fetchval(KEPT, part)
    return found


async def test_plans_are_kept_where_the_connection_is_direct_and_only_there(request, services):
    made = services()

    for _ in range(3):
        await tick_once(made)

    is_direct = request.config.getoption("--server") != "pgbouncer"
    assert await kept(made.database, "has_leases_over") == int(is_direct)


async def test_a_session_that_is_not_its_own_ends_the_keeping(direct_dsn):
    database = Database(direct_dsn)

    async with database.acquire() as connection:
        own = await connection.fetchval("SELECT pg_backend_pid()")
        await database.meet(connection, own)
        await database.renew()
    async with database.acquire() as connection:
        before = await connection.fetchval(KEPT, "pg_prepared_statements")
        await database.meet(connection, own)  # of a session that is gone: this one was made after it
    async with database.acquire() as connection:
        after = await connection.fetchval(KEPT, "pg_prepared_statements")
    await database.close()

    assert (before, after) == (1, 0)


async def test_a_process_that_lives_for_one_tick_makes_no_connection_twice(services, connect, monkeypatch):
    made: list[CountedConnection] = []
    made_again: list[CountedConnection] = []

    class Noted(CountedConnection):
        __slots__ = ()

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            made_again.extend(each for each in made if each.is_closed())
            made.append(self)

    monkeypatch.setattr(db, "CountedConnection", Noted)
    await enqueue(await connect(), "toy")

    summary = await tick_once(services({"toy": Kind(do_nothing)}))

    assert summary["jobs"]["done"] == 1
    assert made
    assert made_again == []


async def test_a_plan_that_is_not_where_it_was_made_ends_the_keeping_and_costs_nothing_else(services, direct_dsn):
    made = replace(services(), database=Database(direct_dsn))
    for _ in range(3):
        await tick_once(made)
    async with made.database.acquire() as connection:
        await connection.execute("DEALLOCATE ALL")  # as if a pooler gave the next statement to another session

    answers = [await tick_once(made) for _ in range(3)]

    assert [answer["errors"] for answer in answers] == [[], [], []]
    assert await kept(made.database, "has_leases_over") == 0
    await made.database.close()


async def test_a_plan_that_is_gone_within_a_transaction_fails_it_and_ends_the_keeping(direct_dsn):
    database = Database(direct_dsn)
    async with database.acquire() as connection:
        await database.meet(connection, await connection.fetchval("SELECT pg_backend_pid()"))
        await database.renew()

    async def use() -> None:
        async with database.acquire() as connection, connection.transaction():
            await connection.fetchval("SELECT $1::int + 1", 1)
            await connection.execute("DEALLOCATE ALL")
            await connection.fetchval("SELECT $1::int + 1", 1)

    with pytest.raises(asyncpg.InvalidSQLStatementNameError) as gone:
        await use()
    await use()  # nothing is kept any more
    await database.close()

    assert is_transient(gone.value)


async def test_a_first_tick_costs_three_round_trips_and_so_does_each_that_follows(services):
    made = services()

    trips = [(await tick_once(made))["round_trips"] for _ in range(4)]

    assert trips == [3, 3, 3, 3]


async def test_a_statement_that_was_slow_is_planned_anew_and_a_quick_one_is_not(direct_dsn):
    database = Database(direct_dsn)
    async with database.acquire() as connection:
        await database.meet(connection, await connection.fetchval("SELECT pg_backend_pid()"))
        await database.renew()

    async with database.acquire() as connection:
        await connection.fetchval("SELECT $1::int + 1", 1)
        quick = await connection.fetchval(KEPT, "::int + 1")
        await connection.fetchval("SELECT pg_sleep($1)", 0.2)
    slow = await kept(database, "::int + 1")
    await database.close()

    assert (quick, slow) == (1, 0)


async def test_plans_of_an_empty_table_do_not_outlive_the_enqueue_that_fills_it(services, direct_dsn, connect):
    made = replace(services({"toy": Kind(do_nothing)}, job_concurrency=500), database=Database(direct_dsn))
    outside = await connect()
    await outside.execute("ALTER TABLE jobs SET (autovacuum_enabled = FALSE)")  # nobody else notices the growth
    for _ in range(12):
        await outside.execute(ENQUEUED, 3)
        await outside.execute("ANALYZE jobs")
        await tick_once(made)
    await outside.execute(ENQUEUED, MANY)
    before = await outside.fetchval(READ_WHOLE)

    done = [(await tick_once(made, jobs=EACH))["jobs"]["done"] for _ in range(5)]
    await made.database.close()
    await outside.execute("SELECT pg_stat_clear_snapshot()")

    assert done == [EACH] * 5
    assert await outside.fetchval(READ_WHOLE) - before < SCANS * MANY


@pytest.mark.parametrize("table", ["jobs", "bookings", "reminders"])
async def test_all_is_planned_anew_when_a_table_has_doubled(direct_dsn, table):
    database = Database(direct_dsn)
    async with database.acquire() as connection:
        await database.meet(connection, await connection.fetchval("SELECT pg_backend_pid()"))
        await database.renew()

    found = []
    async with database.acquire() as connection:
        for size in (8_192, 131_072, 140_000, 270_000, 500_000, 600_000):
            await connection.fetchval("SELECT $1::int + 1", 1)
            await database.measure(connection, **{table: size})
            found.append(await connection.fetchval(KEPT, "::int + 1"))
    await database.close()

    assert found == [1, 1, 0, 1, 0, 1]


async def test_the_sizes_that_a_tick_measures_are_those_of_the_tables(services, monkeypatch):
    measured: dict[str, int] = {}

    async def measure(_database: Database, _connection: object, **tables: int) -> None:
        measured.update(tables)

    monkeypatch.setattr(Database, "measure", measure)
    await tick_once(services())

    assert measured.keys() == {"jobs", "bookings", "reminders"}


async def test_a_new_column_does_not_break_a_statement_that_is_kept(services, connect):
    made = services()
    for _ in range(3):
        await tick_once(made)

    await (await connect()).execute("ALTER TABLE jobs ADD COLUMN note text; ALTER TABLE ticks ADD COLUMN note text")
    async with made.database.acquire() as connection:
        await enqueue(connection, "nobody.knows")
    summary = await tick_once(made)

    assert (summary["errors"], summary["attention"]) == ([], ["unknown_kinds"])
