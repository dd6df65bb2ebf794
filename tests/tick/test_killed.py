"""kill -9 costs nothing but time: what was under way comes back when its lease is over, under the same key."""

import asyncio
import os
import sys
from asyncio.subprocess import Process
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from app.jobs import NewJob, enqueue_many
from tests.bookings.shelf import HOUR, book, book_many, end_leases, states_of
from tests.channels.smtp_server import HANG, smtp_server
from tests.handlers.provider import run_provider
from tests.tick.child import HANDLERS
from tests.tick.ticking import tick_once


class Mail(list[bytes]):
    """A mail server's messages; *has_come* is set when there is one."""

    def __init__(self) -> None:
        super().__init__()
        self.has_come = asyncio.Event()

    def append(self, message: bytes) -> None:
        super().append(message)
        self.has_come.set()


EFFECTS = "CREATE TABLE effects (job_id bigint, key text)"
OWN_ENV = ("PATH", "HOME", "TMPDIR")


@asynccontextmanager
async def child_tick(dsn: str, **settings: str):
    """Run a tick in a process of its own, and see that it ends."""
    env = {name: value for name, value in os.environ.items() if name in OWN_ENV}
    env |= {"DATABASE_URL": dsn, "PYTHONPATH": str(Path.cwd())} | {
        name.upper(): value for name, value in settings.items()
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.tick.child", env=env, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        await kill(process)


async def kill(process: Process) -> None:
    """End a process without a word."""
    if process.returncode is None:
        process.kill()
    await process.wait()


async def test_a_reminder_whose_process_died_after_the_provider_took_it_goes_out_once(services, conn, dsn):
    async with run_provider() as provider:
        await book_many(conn, 8)
        with provider.holding():
            async with child_tick(dsn, **provider.settings) as process:
                await provider.arrived(5)
                await kill(process)
        await end_leases(conn)

        summary = await tick_once(services(**provider.settings))

    sent = await conn.fetchval("SELECT count(*) FROM reminders WHERE status = 'sent'")
    assert summary["rescued"] >= 5
    assert sent == 8
    assert provider.recipients == sorted(f"guest{n}@example.org" for n in range(1, 9))
    assert len(provider.requests) == 13
    assert len({request.body for request in provider.requests}) == 8


async def test_a_rescued_reminder_has_spent_an_attempt_and_counts_a_crash(services, conn, dsn):
    async with run_provider() as provider:
        await book(conn, "b", HOUR)
        with provider.holding():
            async with child_tick(dsn, **provider.settings) as process:
                await provider.arrived(1)
                await kill(process)
        before = await tick_once(services(**provider.settings))
        await end_leases(conn)

        after = await tick_once(services(**provider.settings))

    assert (before["rescued"], before["reminders"]["claimed"]) == (0, 0)
    assert (after["rescued"], after["reminders"]["sent"]) == (1, 1)
    assert tuple(await conn.fetchrow("SELECT attempts, crashes, status FROM jobs")) == (2, 1, "done")


@pytest.mark.parametrize(("ambiguous_send", "messages"), [("hold", 1), ("retry", 2)])
async def test_a_process_that_died_with_mail_under_way_leaves_it_in_doubt(
    services, conn, dsn, ambiguous_send, messages
):
    async with smtp_server({"DOT": HANG}) as server:
        server.messages = taken = Mail()
        mail = {"email_url": f"smtp://127.0.0.1:{server.port}?tls=none", "ambiguous_send": ambiguous_send}
        await book(conn, "b", HOUR)
        async with child_tick(dsn, **mail) as process:
            await taken.has_come.wait()
            await kill(process)
        server.replies.clear()
        await end_leases(conn)

        summary = await tick_once(services(**mail))

    (state,) = await states_of(conn, "b")
    assert summary["reminders"]["uncertain"] == (ambiguous_send == "hold")
    assert summary["reminders"]["sent"] == (ambiguous_send == "retry")
    assert state[1] == {"hold": "uncertain", "retry": "sent"}[ambiguous_send]
    assert len(server.messages) == messages


async def test_a_job_that_kills_its_process_is_buried_after_three_deaths_and_its_neighbours_are_done(
    services, conn, dsn
):
    await conn.execute(EFFECTS)
    await enqueue_many(conn, [NewJob("effect.written", {"kill": n == 4}) for n in range(9)])

    codes = []
    for _ in range(3):
        async with child_tick(dsn) as process:
            codes.append(await process.wait())
        await end_leases(conn)
    summary = await tick_once(services(HANDLERS))

    rows = await conn.fetch("SELECT status, last_error, crashes, payload::text FROM jobs ORDER BY id")
    assert codes == [-9, -9, -9]
    assert [row["status"] for row in rows] == ["done"] * 4 + ["dead"] + ["done"] * 4
    assert (rows[4]["last_error"], rows[4]["crashes"]) == ("crashed", 3)
    assert (summary["crashed"], summary["attention"]) == (1, ["jobs_dead"])
    assert await conn.fetchval("SELECT count(DISTINCT key) FROM effects") == 9


async def test_fresh_jobs_run_beside_a_hundred_whose_lease_is_over(services, conn):
    await conn.execute(EFFECTS)
    await enqueue_many(conn, [NewJob("effect.written") for _ in range(100)])
    await conn.execute("UPDATE jobs SET status = 'running', attempts = 1, locked_until = now() - interval '1 minute'")
    await enqueue_many(conn, [NewJob("effect.written", {"fresh": True}) for _ in range(10)])

    summary = await tick_once(services(HANDLERS))

    rows = await conn.fetch("SELECT attempts, crashes FROM jobs WHERE status = 'done' AND payload = '{}'")
    assert summary["rescued"] == 100
    assert await conn.fetchval("SELECT count(*) FROM jobs WHERE status = 'done' AND payload ? 'fresh'") == 10
    assert {tuple(row) for row in rows} == {(2, 1)}
    assert summary["jobs"]["claimed"] == 100


async def test_two_processes_and_this_one_share_a_batch_without_sending_twice(services, conn, dsn):
    async with run_provider(seconds=0.01) as provider:
        await book_many(conn, 150)
        async with child_tick(dsn, **provider.settings) as one, child_tick(dsn, **provider.settings) as other:
            summaries = [await tick_once(services(**provider.settings))]
            await asyncio.gather(one.wait(), other.wait())
        summaries.append(await tick_once(services(**provider.settings)))

    assert (one.returncode, other.returncode) == (0, 0)
    assert len(provider.requests) == 150
    assert await conn.fetchval("SELECT count(*) FROM reminders WHERE status = 'sent'") == 150
