"""What the doctor finds in the database and on the way to it, on connections of its own.

Two of them: a pooler shows itself when the server's process behind a connection is not the one that the
greeting named, and pools by transaction when two idle connections share one.
"""

import ipaddress
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import asyncpg

from app.cli.findings import Finding
from app.cli.sentences import judge_database_error
from app.config import Settings
from app.db import Connection
from app.migrate import HEAD, is_behind, schema_version

VERSION_MIN, VERSION_MAX = 13, 18
CLOCK_DIFFERENCE_MAX = 2.0
TICK_AGE_WARN = 3600.0
TICK_AGE_MAX = 3 * 3600.0  # GitHub's schedule is late by an hour on an ordinary day
COMMAND_SECONDS = 10.0
CLOSE_SECONDS = 2.0


async def check_database(settings: Settings) -> list[Finding]:
    """Connect and judge server, pooler, clock, schema and the last tick; one finding when that fails."""
    started = time.monotonic()
    try:
        async with _connected(settings) as first, _connected(settings) as second:
            reached = f"reached in {1000 * (time.monotonic() - started) / 2:.0f} ms"
            return [Finding("database", "ok", reached), *await _judge(first, second)]
    except Exception as error:  # noqa: BLE001 - raised again by the judge, when it is not the database's
        return [_unreachable(error)]


@asynccontextmanager
async def _connected(settings: Settings) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(
        settings.dsn,
        timeout=settings.connect_timeout_seconds,
        command_timeout=COMMAND_SECONDS,
        statement_cache_size=0,
        server_settings={"application_name": "dormouse doctor"},
    )
    try:
        yield connection
    finally:
        await connection.close(timeout=CLOSE_SECONDS)


def _unreachable(error: Exception) -> Finding:
    advice = "Check DATABASE_URL, and that this host may connect: firewall, allowed addresses, a sleeping server."
    if isinstance(error, OSError):
        return Finding("database", "fail", f"cannot be reached ({type(error).__name__})", advice)
    sentence, _ = judge_database_error(error)
    return Finding("database", "fail", sentence, advice)


async def _judge(first: Any, second: Any) -> list[Finding]:
    return [
        *await check_server(first),
        await check_pooler(first, second),
        check_encryption(first),
        await check_clock(first),
        *await check_schema(first),
    ]


SERVER = """
    SELECT current_setting('server_version_num')::int / 10000 AS version,
        pg_is_in_recovery() AS is_replica,
        current_setting('transaction_read_only')::bool AS is_read_only
"""


async def check_server(connection: Connection) -> list[Finding]:
    """Judge the server's version, and whether it takes writes."""
    row = await connection.fetchrow(SERVER)
    assert row is not None  # noqa: S101 - a SELECT without FROM returns one row
    found = [_judge_version(row["version"])]
    if row["is_replica"]:
        advice = "DATABASE_URL must name the primary: a replica takes no writes and shows old rows."
        found.append(Finding("server", "fail", "is a replica", advice))
    elif row["is_read_only"]:
        advice = "Turn off default_transaction_read_only for this user or database."
        found.append(Finding("server", "fail", "lets this user only read", advice))
    return found


def _judge_version(version: int) -> Finding:
    says = f"PostgreSQL {version}"
    if VERSION_MIN <= version <= VERSION_MAX:
        return Finding("server", "ok", says)
    advice = f"Versions {VERSION_MIN} to {VERSION_MAX} are tested."
    return Finding("server", "fail" if version < VERSION_MIN else "warn", says, advice)


BACKEND = """
    SELECT pg_backend_pid()
"""


async def check_pooler(first: Any, second: Any) -> Finding:
    """Say what stands between us and the server."""
    backends = [await connection.fetchval(BACKEND) for connection in (first, second)]
    if backends[0] == backends[1]:
        return Finding("pooler", "ok", "a transaction pooler: nothing here needs a session")
    if first.get_server_pid() != backends[0]:
        return Finding("pooler", "ok", "a pooler, which gave two connections two sessions")
    return Finding("pooler", "ok", "none: direct connections")


def check_encryption(connection: Any) -> Finding:
    """Say whether the way to the server is encrypted; a socket or loopback need not be."""
    transport = connection._transport  # noqa: SLF001 - asyncpg has no public word for it
    if cipher := transport.get_extra_info("cipher"):
        return Finding("encryption", "ok", f"{cipher[1]}, {cipher[0]}")
    peer = transport.get_extra_info("peername")
    if isinstance(peer, tuple) and not ipaddress.ip_address(peer[0]).is_loopback:
        advice = "Add ?sslmode=require (or verify-full) to DATABASE_URL, unless the network is your own."
        return Finding("encryption", "warn", "the password and all rows cross the network in the clear", advice)
    return Finding("encryption", "ok", "not needed on this machine")


CLOCK = """
    SELECT clock_timestamp()
"""


async def check_clock(connection: Connection) -> Finding:
    """Hold our clock against the database's, which decides everything."""
    before = datetime.now(UTC)
    theirs = await connection.fetchval(CLOCK)
    after = datetime.now(UTC)
    difference = (before + (after - before) / 2 - theirs).total_seconds()
    says = f"ours differs from the database's by {difference:+.1f} s"
    if abs(difference) <= CLOCK_DIFFERENCE_MAX:
        return Finding("clock", "ok", says)
    advice = "Nothing is decided by ours, but logs will mislead: synchronise the host's clock."
    return Finding("clock", "warn", says, advice)


async def check_schema(connection: Connection) -> list[Finding]:
    """Judge the schema, and the age of the last tick when there is a schema."""
    version = await schema_version(connection)
    if is_behind(version):
        says = f"revision {version or 'none yet'}, this build needs {HEAD}"
        return [Finding("schema", "fail", says, "Run `dormouse migrate`.")]
    return [Finding("schema", "ok", f"revision {version}"), await check_last_tick(connection)]


LAST_TICK = """
    SELECT extract(epoch FROM clock_timestamp() - max(finished_at))::float8
    FROM ticks
"""


async def check_last_tick(connection: Connection) -> Finding:
    """Say how long ago the last tick ended: work is done only when someone ticks."""
    age = await connection.fetchval(LAST_TICK)
    if age is None:
        advice = "Let the scheduler call POST /api/cron/tick, or run `dormouse tick`."
        return Finding("last tick", "warn", "there was none yet", advice)
    says = f"{age / 60:.0f} minutes ago"
    if age <= TICK_AGE_WARN:
        return Finding("last tick", "ok", says)
    advice = "Look at the scheduler: GitHub ends schedules after 60 quiet days, and a secret may have changed."
    return Finding("last tick", "fail" if age > TICK_AGE_MAX else "warn", says, advice)
