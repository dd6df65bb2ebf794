"""Ticks that ran before the sums were kept are in the sums from the beginning."""

import json
import secrets
from typing import Any

import asyncpg

from app.migrate import migrate, write_sql
from tests.servers import Server

TICK = """
    INSERT INTO ticks (id, started_at, finished_at, source, summary)
    VALUES (gen_random_uuid(), now(), now(), 'test', $1::text::jsonb)
"""


async def test_the_migration_adds_up_the_ticks_that_are_on_record(server: Server) -> None:
    name = f"t_{secrets.token_hex(6)}"
    admin: Any = await asyncpg.connect(server.admin_dsn)
    await admin.execute(f'CREATE DATABASE "{name}"')
    connection = await asyncpg.connect(server.direct(name), statement_cache_size=0)
    await connection.execute(write_sql(None, "0001"))
    for done, sent in ((3, 0), (4, 2)):
        counts = {"jobs": {"done": done, "dead": 0}, "reminders": {"sent": sent, "skipped": {"moved": 1}}}
        await connection.execute(TICK, json.dumps(counts))
    await connection.execute(TICK, json.dumps({"jobs": "none", "reminders": None}))

    await migrate(server.dsn(name))

    totals = {row["name"]: row["value"] for row in await connection.fetch("SELECT name, value FROM tick_totals")}
    await connection.close()
    await admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    await admin.close()
    assert totals == {"ticks": 3, "jobs.done": 7, "reminders.sent": 2}
