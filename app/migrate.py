"""The schema's version: which one the database has, and how it gets to ours.

Alembic writes the SQL from `migrations/` (no engine, no second driver); it is sent through asyncpg in one
transaction that first takes an advisory lock. The lock lives as long as the transaction, so that a transaction
pooler holds it too, and two deployments at once migrate one after the other.
"""

import io
from pathlib import Path
from typing import Any

import asyncpg

from app.db import Connection
from app.errors import ConfigError, DatabaseUnavailable

HEAD = "0004"
FOLDER = Path(__file__).resolve().parent.parent / "migrations"
LOCK_TRIES = 5
CONNECT_SECONDS = 15.0

# lock_timeout bounds the wait for the advisory lock and for each table: readers never queue behind us for long.
# statement_timeout bounds what is done once a lock is held: writers wait for that.
BEGIN_LOCKED = """
    BEGIN;
    SET LOCAL lock_timeout = '3s';
    SET LOCAL statement_timeout = '5min';
    SELECT pg_advisory_xact_lock(4995148757353981011)
"""

SCHEMA_VERSION = """
    SELECT version_num
    FROM alembic_version
"""


async def schema_version(connection: Connection) -> str | None:
    """Return the revision that the database has, None before the first migration."""
    try:
        version: str | None = await connection.fetchval(SCHEMA_VERSION)
    except asyncpg.UndefinedTableError:
        return None
    return version


def is_behind(version: str | None) -> bool:
    """Say whether a database at *version* lacks what this build needs; a newer one is fine."""
    return version is None or version < HEAD


async def migrate(dsn: str) -> list[str]:
    """Bring the database to HEAD and return the revisions applied, oldest first; an empty list when none was due.

    Another migration under way is waited for, 3 s at a time, five times; then DatabaseUnavailable.
    """
    connection = await asyncpg.connect(dsn, statement_cache_size=0, timeout=CONNECT_SECONDS)
    try:
        for _ in range(LOCK_TRIES):
            try:
                return await _migrate_locked(connection)
            except asyncpg.LockNotAvailableError:
                await connection.execute("ROLLBACK")
            except asyncpg.QueryCanceledError:
                raise DatabaseUnavailable("a step took longer than 5 minutes: nothing was changed") from None
        raise DatabaseUnavailable("another migration, or a long transaction, holds the tables: try again later")
    finally:
        await connection.close(timeout=CONNECT_SECONDS)


async def _migrate_locked(connection: Connection) -> list[str]:
    await connection.execute(BEGIN_LOCKED)
    version = await _version_inside(connection)
    if not is_behind(version):
        await connection.execute("ROLLBACK")
        return []
    await connection.execute(write_sql(version))
    await connection.execute("COMMIT")
    return [revision for revision in _revisions() if version is None or revision > version]


VERSION_TABLE_EXISTS = """
    SELECT to_regclass('alembic_version') IS NOT NULL
"""


async def _version_inside(connection: Connection) -> str | None:
    if not await connection.fetchval(VERSION_TABLE_EXISTS):
        return None
    return await schema_version(connection)


def write_sql(version: str | None, target: str = HEAD) -> str:
    """Return the SQL that leads from *version* to *target*."""
    from alembic import command  # noqa: PLC0415 - only a migration pays for Alembic

    text = io.StringIO()
    command.upgrade(_config(text), f"{version}:{target}" if version else target, sql=True)
    return text.getvalue()


def _revisions() -> list[str]:
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - only a migration pays for Alembic

    script = ScriptDirectory.from_config(_config(io.StringIO()))
    return sorted(revision.revision for revision in script.walk_revisions())


def _config(text: io.StringIO) -> Any:
    from alembic.config import Config  # noqa: PLC0415 - only a migration pays for Alembic

    if not (FOLDER / "env.py").exists():
        raise ConfigError(
            ["The folder migrations/ must lie beside app/: install with pip install -e, or use the image."]
        )
    config = Config(output_buffer=text)
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    return config
