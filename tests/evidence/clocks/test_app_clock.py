"""A program whose own clock is wrong decides nothing by it: due, leases, retries and records are the database's.

`dormouse tick` and `dormouse serve` run as they are, ten minutes or four hundred days away.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.evidence.clocks.faked import lying
from tests.evidence.http.canaries import run_command
from tests.evidence.http.real import ROOT, bare_environment, serve_really
from tests.evidence.http.tokens import API_TOKEN, CRON_SECRET, ENVIRONMENT, bearer

OFFSETS = ("+10m", "-10m", "+400d", "-400d")

# What is due, what is not due by minutes or by a year, a lease that holds, one that does not, one that is too late.
WORLD = """
    INSERT INTO jobs (id, kind, run_at) VALUES
        (901, 'clock.done', now() - interval '1 second'), (902, 'clock.done', now() + interval '5 minutes'),
        (903, 'clock.done', now() + interval '200 days'), (904, 'clock.fails', now() - interval '1 year');
    INSERT INTO jobs (id, kind, status, locked_until) VALUES
        (905, 'clock.done', 'running', now() + interval '5 minutes'),
        (906, 'clock.done', 'running', now() - interval '1 second');
    INSERT INTO jobs (id, kind, run_at, expires_at) VALUES
        (907, 'clock.done', now(), now() + interval '5 minutes'),
        (908, 'clock.done', now(), now() - interval '1 second');
    INSERT INTO jobs (id, kind, status, finished_at) VALUES
        (909, 'clock.done', 'done', now() - interval '6 days'), (910, 'clock.done', 'done', now() - interval '8 days');
    INSERT INTO bookings (id, starts_at, created_at, attendee_email) VALUES
        ('due', now() + interval '23 hours 55 minutes', now() - interval '9 days', 'due@example.com'),
        ('not yet', now() + interval '24 hours 5 minutes', now() - interval '9 days', 'not-yet@example.com'),
        ('next year', now() + interval '380 days', now() - interval '9 days', 'next-year@example.com')
"""
STATES = "SELECT id, status, attempts, crashes FROM jobs WHERE id BETWEEN 901 AND 910 ORDER BY id"
EXPECTED = {
    901: ("done", 1, 0),
    902: ("ready", 0, 0),
    903: ("ready", 0, 0),
    904: ("ready", 1, 0),
    905: ("running", 0, 0),
    906: ("done", 1, 1),
    907: ("done", 1, 0),
    908: ("expired", 0, 0),
    909: ("done", 0, 0),
}
HANDLERS = """
from app.jobs import Kind, Steps


async def done(job):
    pass


async def fails(job):
    raise LookupError("not there")


HANDLERS = {"clock.done": Kind(done), "clock.fails": Kind(fails, retry=Steps(600))}
"""
STAMPS_ARE_OF_NOW = """
    SELECT bool_and(now() - moment < interval '60 seconds' AND moment <= now())
    FROM (
        SELECT started_at AS moment FROM ticks
        UNION ALL SELECT finished_at FROM ticks
        UNION ALL SELECT sent_at FROM reminders
        UNION ALL SELECT finished_at FROM jobs WHERE id IN (901, 906, 907)
    ) AS stamps
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder from which the program finds its handlers."""
    (tmp_path / "clock_jobs.py").write_text(HANDLERS)
    return tmp_path


@pytest.mark.parametrize("offset", OFFSETS)
async def test_a_tick_of_a_program_with_a_wrong_clock_does_what_is_due(
    dsn: str, conn: Any, folder: Path, offset: str
) -> None:
    await conn.execute(WORLD)
    settings = {"DATABASE_URL": dsn, "HANDLER_MODULES": "clock_jobs", "OUTBOX_DIR": str(folder / "outbox")}

    await run_command(folder, settings | lying(offset), "tick", "--json")

    summary = json.loads(await conn.fetchval("SELECT summary::text FROM ticks"))
    states = {row["id"]: (row["status"], row["attempts"], row["crashes"]) for row in await conn.fetch(STATES)}
    assert states == EXPECTED
    assert summary["reminders"]["sent"] == 1
    assert await conn.fetchval("SELECT array_agg(booking_id) FROM reminders") == ["due"]
    assert await conn.fetchval(
        "SELECT bool_and(abs(extract(epoch FROM run_at - now()) - 600) < 60) FROM jobs WHERE id = 904"
    )
    assert await conn.fetchval(STAMPS_ARE_OF_NOW)


@pytest.mark.parametrize("offset", ["-10m", "+400d"])
async def test_a_delay_asked_for_by_http_counts_from_the_database_s_clock(
    dsn: str, conn: Any, folder: Path, offset: str
) -> None:
    with serve_really(folder, ENVIRONMENT | {"DATABASE_URL": dsn} | lying(offset)) as serving:
        async with httpx.AsyncClient(base_url=serving.url, timeout=30) as client:
            posted = await client.post(
                "/api/jobs", json={"kind": "toy", "delay_seconds": 600}, headers=bearer(API_TOKEN)
            )
            ticked = await client.post("/api/cron/tick", headers=bearer(CRON_SECRET))
            status = await client.get("/api/cron/status", headers=bearer(CRON_SECRET))

    assert (posted.status_code, ticked.status_code, status.status_code) == (201, 200, 200)
    assert ticked.json()["backlog"]["due"] == 0
    assert 0 <= status.json()["last_tick_age_seconds"] < 60
    assert await conn.fetchval("SELECT abs(extract(epoch FROM run_at - now()) - 600) < 60 FROM jobs")


async def test_the_clock_of_the_program_was_wrong_indeed() -> None:
    code = "import datetime, uvloop; print((datetime.datetime.now() - datetime.datetime(2020, 1, 1)).days)"
    days = []
    for environment in (bare_environment(), bare_environment() | lying("+400d")):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, cwd=ROOT, env=environment, stdout=asyncio.subprocess.PIPE
        )
        said, _ = await process.communicate()
        days.append(int(said))

    assert days[1] - days[0] in {400, 401}
