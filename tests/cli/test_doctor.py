"""`dormouse doctor` finds what is wrong, says what to do, and is 1 only when something is broken."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.cli.check_database import check_encryption, check_pooler, check_server
from app.cli.findings import Finding
from tests.cli.conftest import Dormouse, Ended
from tests.conftest import CRON_SECRET
from tests.servers import Server

TICKED = """
    INSERT INTO ticks (id, started_at, finished_at, source, summary)
    VALUES (gen_random_uuid(), now() - $1::interval, now() - $1::interval, 'test', '{}')
"""


def level(ended: Ended, check: str) -> str:
    """Return the worst level that the report gives *check*."""
    levels = [finding["level"] for finding in ended.json["findings"] if finding["check"] == check]
    return max(levels, key=["ok", "note", "warn", "fail"].index, default="")


async def test_a_good_house_is_0(dormouse: Dormouse, conn: Any) -> None:
    await conn.execute(TICKED.replace("$1", "'1 minute'"))

    ended = await dormouse("doctor", "--json", CRON_SECRET=CRON_SECRET, API_TOKEN=secrets.token_hex(32))

    assert ended.code == 0, ended.out
    assert ended.json["ok"]
    checks = {finding["check"] for finding in ended.json["findings"]}
    assert checks >= {"settings", "database", "server", "pooler", "clock", "schema", "mail", "kinds", "last tick"}
    assert level(ended, "last tick") == "ok"
    assert CRON_SECRET not in ended.out


async def test_the_table_has_a_line_of_advice_for_each_finding(dormouse: Dormouse, dsn: str) -> None:
    ended = await dormouse("doctor")

    assert ended.code == 1
    assert "openssl rand -hex 32" in ended.out
    assert "1 to mend" in ended.out


@pytest.mark.parametrize(
    ("settings", "check", "expected"),
    [
        ({"CRON_SECRET": "ab" * 20}, "CRON_SECRET", "warn"),
        ({"CRON_SECRET_PREVIOUS": "previous-0123456789abcdef0123456789abcdef"}, "CRON_SECRET_PREVIOUS", "note"),
        ({"TICK_JOBS": "none"}, "settings", "fail"),
        ({"EMAIL_URL": "gopher://x"}, "mail", "fail"),
        ({"EMAIL_URL": "smtps://user:canary@127.0.0.1:1"}, "mail", "fail"),
        ({"OUTBOX_DIR": "/dev/null/outbox"}, "mail", "fail"),
        ({"HANDLER_MODULES": "nowhere"}, "kinds", "fail"),
        ({"DATABASE_URL": "postgresql://u:canary@127.0.0.1:1/x"}, "database", "fail"),
        ({"DATABASE_URL": ""}, "settings", "fail"),
    ],
    ids=str,
)
async def test_each_fault_is_found(
    dormouse: Dormouse, dsn: str, settings: dict[str, str], check: str, expected: str
) -> None:
    ended = await dormouse("doctor", "--json", **{"CRON_SECRET": CRON_SECRET} | settings)

    assert level(ended, check) == expected, ended.out
    assert ended.code == (1 if expected == "fail" else 0)
    assert "canary" not in ended.out + ended.err
    assert "Traceback" not in ended.err


async def test_a_schema_that_is_behind_and_a_silent_scheduler_are_found(dormouse: Dormouse, conn: Any) -> None:
    await conn.execute(TICKED.replace("$1", "'5 hours'"))
    silent = await dormouse("doctor", "--json", CRON_SECRET=CRON_SECRET)
    await conn.execute("DROP TABLE alembic_version")
    behind = await dormouse("doctor", "--json", CRON_SECRET=CRON_SECRET)

    assert (silent.code, level(silent, "last tick")) == (1, "fail")
    assert (behind.code, level(behind, "schema")) == (1, "fail")
    assert "Run `dormouse migrate`." in behind.out


async def test_a_user_who_may_only_read_is_found(conn: Any) -> None:
    await conn.execute("SET default_transaction_read_only = on")

    findings = await check_server(conn)

    assert [finding.level for finding in findings] == ["ok", "fail"]


async def test_the_way_to_the_server_is_named(dormouse: Dormouse, dsn: str, server: Server) -> None:
    ended = await dormouse("doctor", "--json", CRON_SECRET=CRON_SECRET)

    says = next(finding["says"] for finding in ended.json["findings"] if finding["check"] == "pooler")
    assert ("transaction pooler" in says) is (server.pooler is not None)


class Pooled:
    """A connection whose greeting named another process than the one that answers, as a pooler's does."""

    def __init__(self, backend: int, greeted: int) -> None:
        self.backend = backend
        self.greeted = greeted

    async def fetchval(self, _query: str) -> int:
        return self.backend

    def get_server_pid(self) -> int:
        return self.greeted


@pytest.mark.parametrize(
    ("first", "second", "word"),
    [
        (Pooled(10, 10), Pooled(11, 11), "none"),
        (Pooled(10, 99), Pooled(10, 98), "transaction pooler"),
        (Pooled(10, 99), Pooled(11, 98), "two sessions"),
    ],
    ids=["direct", "transaction", "session"],
)
async def test_poolers_are_told_apart(first: Pooled, second: Pooled, word: str) -> None:
    finding = await check_pooler(first, second)

    assert word in finding.says


async def test_a_connection_on_this_machine_needs_no_encryption(conn: Any) -> None:
    assert check_encryption(conn) == Finding("encryption", "ok", "not needed on this machine")


@contextlib.asynccontextmanager
async def silent_server() -> AsyncIterator[int]:
    """A mail server that takes connections and says nothing."""
    done = asyncio.Event()

    async def hold(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await done.wait()
        writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        done.set()


async def test_a_mail_server_that_says_nothing_is_not_waited_for_long(dormouse: Dormouse, dsn: str) -> None:
    async with silent_server() as port:
        ended = await dormouse("doctor", "--json", CRON_SECRET=CRON_SECRET, EMAIL_URL=f"smtps://127.0.0.1:{port}")

    assert level(ended, "mail") == "fail"
