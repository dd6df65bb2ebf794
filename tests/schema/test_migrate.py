"""The schema gets from any version to ours, once, whoever else is at it, and waits for nobody longer than it says."""

import asyncio
import io
import secrets
import time
from collections.abc import AsyncIterator

import asyncpg
import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from app.errors import DatabaseUnavailable
from app.migrate import FOLDER, HEAD, is_behind, migrate, schema_version, write_sql
from tests.jobs.rows import until_waiting

SHAPE = """
    SELECT string_agg(line, E'\\n' ORDER BY line)
    FROM (
        SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable, column_default) AS line
        FROM information_schema.columns WHERE table_schema = 'public'
        UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
        UNION ALL SELECT concat_ws(' ', conname, pg_get_constraintdef(oid)) FROM pg_constraint
            WHERE connamespace = 'public'::regnamespace
        UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
            AND probin IS NULL AND prolang <> 0 AND oid NOT IN (SELECT objid FROM pg_depend WHERE deptype = 'e')
    ) AS shape
"""


@pytest.fixture
async def blank(server) -> AsyncIterator[str]:
    """The name of a database in which nothing is."""
    name = f"t_{secrets.token_hex(6)}"
    admin = await asyncpg.connect(server.admin_dsn)
    await admin.execute(f'CREATE DATABASE "{name}"')
    yield name
    await admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    await admin.close()


@pytest.fixture
async def plain(server, blank):
    """A connection to it, past any pooler."""
    connection = await asyncpg.connect(server.direct(blank), statement_cache_size=0)
    yield connection
    await connection.close()


def script() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(FOLDER))
    return ScriptDirectory.from_config(config)


def downgrade_sql(span: str) -> str:
    text = io.StringIO()
    config = Config(output_buffer=text)
    config.set_main_option("script_location", str(FOLDER))
    command.downgrade(config, span, sql=True)
    return text.getvalue()


def revisions() -> list[str]:
    return sorted(revision.revision for revision in script().walk_revisions())


def test_the_head_that_the_program_knows_is_the_newest_revision():
    assert script().get_heads() == [HEAD]
    assert revisions()[-1] == HEAD


async def test_a_blank_database_gets_everything_and_then_nothing_more(server, blank, plain):
    before = await schema_version(plain)

    first = await migrate(server.dsn(blank))
    shape = await plain.fetchval(SHAPE)
    second = await migrate(server.dsn(blank))

    assert before is None
    assert first == revisions()
    assert second == []
    assert await schema_version(plain) == HEAD
    assert await plain.fetchval(SHAPE) == shape


async def test_four_migrations_at_once_apply_each_revision_once(server, blank, plain):
    results = await asyncio.gather(*(migrate(server.dsn(blank)) for _ in range(4)))

    assert sorted(len(applied) for applied in results) == [0, 0, 0, len(revisions())]
    assert await schema_version(plain) == HEAD


async def test_the_way_down_leads_back_to_nothing_and_up_again_to_the_same(server, blank, plain):
    nothing = await plain.fetchval(SHAPE)
    await migrate(server.dsn(blank))
    shape = await plain.fetchval(SHAPE)

    await plain.execute(downgrade_sql(f"{HEAD}:base"))
    await plain.execute("DROP TABLE IF EXISTS alembic_version")
    emptied = await plain.fetchval(SHAPE)
    applied = await migrate(server.dsn(blank))

    assert emptied == nothing
    assert applied == revisions()
    assert await plain.fetchval(SHAPE) == shape


async def test_each_revision_can_be_taken_back_by_itself(server, blank, plain):
    await plain.execute(write_sql(None))
    for newer, older in zip(reversed(revisions()), reversed(revisions()[:-1]), strict=False):
        await plain.execute(downgrade_sql(f"{newer}:{older}"))
        assert await schema_version(plain) == older
        assert is_behind(older)

    applied = await migrate(server.dsn(blank))

    assert applied == revisions()[1:]


async def test_rows_survive_the_way_from_the_first_version_to_ours(server, blank, plain):
    await plain.execute(write_sql(None, "0001"))
    await plain.execute("INSERT INTO jobs (kind) SELECT 'toy' FROM generate_series(1, 100)")

    await migrate(server.dsn(blank))

    assert await plain.fetchval("SELECT count(*) FROM jobs WHERE kind = 'toy' AND status = 'ready'") == 100


async def test_a_table_in_use_makes_it_give_up_in_time_and_readers_go_on(server, blank, plain, monkeypatch):
    monkeypatch.setattr("app.migrate.LOCK_TRIES", 1)
    await plain.execute(write_sql(None, "0001"))
    reader, watcher = [await asyncpg.connect(server.direct(blank)) for _ in range(2)]
    started = time.monotonic()

    async with plain.transaction():
        await plain.fetchval("SELECT count(*) FROM jobs")
        migrating = asyncio.create_task(migrate(server.dsn(blank)))
        await until_waiting(watcher)
        read = await reader.fetchval("SELECT count(*) FROM jobs", timeout=5)
        with pytest.raises(DatabaseUnavailable):
            await migrating
    seconds = time.monotonic() - started
    await reader.close()
    await watcher.close()

    assert read == 0
    assert seconds < 6
    assert await schema_version(plain) == "0001"


async def test_a_table_that_is_free_again_in_time_is_migrated(server, blank, plain):
    await plain.execute(write_sql(None, "0001"))
    watcher = await asyncpg.connect(server.direct(blank))

    async with plain.transaction():
        await plain.fetchval("SELECT count(*) FROM jobs")
        migrating = asyncio.create_task(migrate(server.dsn(blank)))
        await until_waiting(watcher)
    applied = await migrating
    await watcher.close()

    assert applied == revisions()[1:]


async def test_a_migration_that_fails_leaves_nothing_behind(server, blank, plain):
    await plain.execute("CREATE TABLE ticks (x int)")

    with pytest.raises(asyncpg.DuplicateTableError):
        await migrate(server.dsn(blank))

    assert await plain.fetchval("SELECT to_regclass('jobs') IS NULL AND to_regclass('alembic_version') IS NULL")


async def test_no_lock_is_held_when_it_is_over(server, blank, plain):
    await migrate(server.dsn(blank))

    assert await plain.fetchval("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0


@pytest.mark.parametrize(("version", "behind"), [(None, True), ("0000", True), (HEAD, False), ("9999", False)])
def test_only_an_older_schema_is_behind(version, behind):
    assert is_behind(version) is behind
