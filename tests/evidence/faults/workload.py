"""A database in which a tick has everything to do, and what must be true of it in the end.

a lease that is over | a job too late, an old one, a refused one | a booking to remind of | jobs that write in and out
"""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import asyncpg

from app.jobs import Job, Kind, NewJob, Permanent, enqueue_many
from app.jobs.services import Services
from tests.bookings.shelf import HOUR, book, end_leases
from tests.evidence.kills.checker import check, last_ticks
from tests.evidence.kills.deeds import HANDLERS, INSIDE, OUTSIDE, TABLES, read_marks
from tests.evidence.kills.roles import make_services, make_settings
from tests.servers import Server

LEASE_SECONDS = 60.0
JOB_SECONDS = 0.5
LATE, OLD, REFUSED = "note.late", "note.old", "note.refused"
CRASHED = """
    UPDATE jobs
    SET status = 'running', attempts = 1, fence = 1, started_at = now(), locked_until = now() - interval '1 second'
    WHERE id = $1
"""
TOO_LATE = "UPDATE jobs SET expires_at = now() - interval '1 second' WHERE kind = $1"
FINISHED = "UPDATE jobs SET status = 'done', finished_at = now() - interval '30 days' WHERE kind = $1"
LEFT = "SELECT status FROM jobs WHERE kind = ANY ($1) ORDER BY id"
QUIET = """
    SELECT pg_terminate_backend(pid, 5000)
    FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'dormouse'
"""
EMPTY = """
    TRUNCATE jobs, reminders, bookings, ticks, tick_totals, effects, history
"""


async def refuse(_job: Job) -> None:
    """End for good, and not well."""
    raise Permanent("no")


@dataclass(eq=False)
class Stage:
    """One database, used again and again: *folder* has the marks and the outbox of the workload now on it."""

    dsn: str
    conn: Any
    folder: Path
    enqueued: list[int]

    @property
    def marks(self) -> Path:
        """The file that jobs leave their marks in."""
        return self.folder / "marks"

    def services(self, dsn: str | None = None, **values: Any) -> Services:
        """Return the services of a process that reaches the database at *dsn*; directly, with time for all, if None."""
        outbox = str(self.folder / "outbox")
        made = make_services(make_settings(dsn or self.dsn, LEASE_SECONDS, outbox_dir=outbox, **values))
        made = replace(made, kinds={**made.kinds, REFUSED: Kind(refuse, timeout=JOB_SECONDS)})
        if dsn is None:
            return made
        quick = {name: replace(kind, timeout=JOB_SECONDS) for name, kind in made.kinds.items() if name in HANDLERS}
        return replace(made, kinds={**made.kinds, **quick})

    async def fill(self, folder: Path) -> None:
        """Empty the database and give a tick everything to do; its files go below *folder*."""
        self.folder = folder
        folder.mkdir(parents=True)  # noqa: ASYNC240 - a test's own disk
        await self.conn.execute(EMPTY)
        payload = {"file": str(self.marks), "seconds": 0.005}
        deeds = await enqueue_many(self.conn, [NewJob(kind, payload) for kind in (INSIDE, OUTSIDE, INSIDE, OUTSIDE)])
        await enqueue_many(self.conn, [NewJob(LATE), NewJob(OLD), NewJob(REFUSED)])
        self.marks.write_text(f"{deeds[0].id} 1 0\n")
        await self.conn.execute(CRASHED, deeds[0].id)
        await self.conn.execute(TOO_LATE, LATE)
        await self.conn.execute(FINISHED, OLD)
        await book(self.conn, "b", HOUR)
        await self.conn.execute("DELETE FROM history")
        self.enqueued = [job.id for job in deeds]

    async def finish(self) -> list[str]:
        """Let healthy ticks do what is left, and return what is not as it must be then."""
        await self.conn.execute(QUIET)
        await end_leases(self.conn)
        services = self.services()
        try:
            problems = await last_ticks(self.conn, services)
        finally:
            await services.database.close()
        problems += await check(self.conn, self.enqueued, read_marks(self.marks))
        left = [row["status"] for row in await self.conn.fetch(LEFT, [LATE, OLD, REFUSED])]
        sent = [row["status"] for row in await self.conn.fetch("SELECT status FROM reminders")]
        mails = len(list((self.folder / "outbox").glob("*.eml")))
        if (left, sent, mails) != (["expired", "dead"], ["sent"], 1):
            problems.append(
                f"the late, the old and the refused job are {left}, reminders are {sent}, {mails} messages went out"
            )
        return problems


@asynccontextmanager
async def open_stages(server: Server, count: int) -> AsyncIterator[list[Stage]]:
    """Lend *count* databases of their own."""
    admin = await asyncpg.connect(server.admin_dsn)
    stages: list[Stage] = []
    try:
        for _ in range(count):
            name = f"f_{secrets.token_hex(6)}"
            await admin.execute(f'CREATE DATABASE "{name}" TEMPLATE template_dormouse')
            conn = await asyncpg.connect(server.direct(name))
            await conn.execute(TABLES)
            stages.append(Stage(server.direct(name), conn, Path(), []))
        yield stages
    finally:
        for stage in stages:
            stage.conn.terminate()
            name = stage.dsn.rsplit("/", 1)[1].partition("?")[0]
            await admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
        await admin.close()
