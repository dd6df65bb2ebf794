"""The stage: one database for all orders, emptied between them, that writes down all that happens to its rows.

    evidence.jobs        each change of a job: from which state to which, fence, attempts and crashes
    evidence.reminders   each change of a reminder, with the key under which it is sent
    evidence.effects     what jobs did inside their own transaction

The notes are written by triggers in the transaction that they tell of: what was rolled back is not in them.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

import asyncpg

from app import db, tick
from app.config import Settings
from app.handlers import booking_reminder
from app.jobs import Kind, crew, pump, settler
from app.jobs.services import Services
from tests.evidence.explorer.gated import SETTINGS, GatedDatabase, Stock

NOTES = """
    CREATE SCHEMA evidence;
    CREATE UNLOGGED TABLE evidence.jobs (
        n bigint GENERATED ALWAYS AS IDENTITY, id bigint, queue text, max_attempts int, old_status text, status text,
        old_fence bigint, fence bigint, old_attempts int, attempts int, old_crashes int, crashes int
    );
    CREATE UNLOGGED TABLE evidence.reminders (
        n bigint GENERATED ALWAYS AS IDENTITY, booking_id text, starts_at timestamptz, remind_before interval,
        channel text, old_status text, status text, reason text, idempotency_key text, job_id bigint,
        sent_at timestamptz
    );
    CREATE UNLOGGED TABLE evidence.effects (job_id bigint);
    CREATE FUNCTION evidence.note_job() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'INSERT' THEN
            INSERT INTO evidence.jobs (id, queue, max_attempts, status, fence, attempts, crashes)
            VALUES (NEW.id, NEW.queue, NEW.max_attempts, NEW.status, NEW.fence, NEW.attempts, NEW.crashes);
        ELSIF TG_OP = 'UPDATE' THEN
            INSERT INTO evidence.jobs (id, queue, max_attempts, old_status, status, old_fence, fence, old_attempts,
                attempts, old_crashes, crashes)
            VALUES (NEW.id, NEW.queue, NEW.max_attempts, OLD.status, NEW.status, OLD.fence, NEW.fence, OLD.attempts,
                NEW.attempts, OLD.crashes, NEW.crashes);
        ELSE
            INSERT INTO evidence.jobs (id, queue, max_attempts, old_status, old_fence, old_attempts, old_crashes)
            VALUES (OLD.id, OLD.queue, OLD.max_attempts, OLD.status, OLD.fence, OLD.attempts, OLD.crashes);
        END IF;
        RETURN NULL;
    END
    $$;
    CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON jobs FOR EACH ROW EXECUTE FUNCTION evidence.note_job();
    CREATE FUNCTION evidence.note_reminder() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO evidence.reminders (booking_id, starts_at, remind_before, channel, old_status, status, reason,
            idempotency_key, job_id, sent_at)
        VALUES (NEW.booking_id, NEW.starts_at, NEW.remind_before, NEW.channel,
            CASE WHEN TG_OP = 'UPDATE' THEN OLD.status END, NEW.status, NEW.reason, NEW.idempotency_key, NEW.job_id,
            NEW.sent_at);
        RETURN NULL;
    END
    $$;
    CREATE TRIGGER note AFTER INSERT OR UPDATE ON reminders FOR EACH ROW EXECUTE FUNCTION evidence.note_reminder()
"""

# Every table of ours, whichever migration made it.
CLEAN = """
    SELECT string_agg('DELETE FROM ' || oid::regclass, '; ')
    FROM pg_class
    WHERE relkind = 'r' AND relname <> 'alembic_version'
        AND relnamespace IN ('public'::regnamespace, 'evidence'::regnamespace)
"""
# The notes come last: the deletions before them are noted too.
RESTART = """
    ; DELETE FROM evidence.jobs; DELETE FROM evidence.reminders;
    SELECT setval(pg_get_serial_sequence('jobs', 'id'), 1, FALSE)
"""
# Whoever of ours asks how late it is.
CLOCKED = (db, tick, crew, pump, settler)
IS_BLOCKED = "SELECT cardinality(pg_blocking_pids($1)) > 0"


class Clock:
    """The process' clock during an order: it goes on by so much at each step, so that a seed is one order anywhere."""

    def __init__(self, stock: Stock) -> None:
        self._stock = stock

    def monotonic(self) -> float:
        """Return the seconds since the order began."""
        scheduler = self._stock.scheduler
        return 0.0 if scheduler is None else scheduler.index * scheduler.step_seconds


class Stage:
    """A database, its connections, and what every order is played with."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.stock = Stock(dsn)
        self._made: dict[tuple[tuple[str, Any], ...], Settings] = {}

    @asynccontextmanager
    async def open(self, channel: Any) -> AsyncIterator["Stage"]:
        """Prepare the database and hand every reminder to *channel*, the far side, until the block ends."""
        self.admin = await asyncpg.connect(self.dsn, server_settings=SETTINGS)
        self.monitor = await asyncpg.connect(self.dsn, server_settings=SETTINGS)
        await self.admin.execute(NOTES)
        self._clean = await self.admin.fetchval(CLEAN) + RESTART
        try:
            with ExitStack() as stack:
                stack.enter_context(patch.object(booking_reminder, "open_email", lambda _settings: channel))
                for module in CLOCKED:
                    stack.enter_context(patch.object(module, "time", Clock(self.stock)))
                yield self
        finally:
            await self.stock.close()
            self.admin.terminate()
            self.monitor.terminate()

    async def reset(self) -> datetime:
        """Empty the stage and return the database's time."""
        await self.admin.execute(self._clean)
        now: datetime = await self.admin.fetchval("SELECT now()")
        return now

    async def is_blocked(self, pid: int) -> bool:
        """Say whether the backend *pid* waits for a lock that another holds."""
        found: bool = await self.monitor.fetchval(IS_BLOCKED, pid)
        return found

    def settings(self, **overrides: Any) -> Settings:
        """Return settings made once for each set of *overrides*."""
        key = tuple(sorted(overrides.items()))
        if key not in self._made:
            values = {"cron_secret": "tick-" + "e" * 40, "reminder_offsets": (timedelta(hours=24),)}
            self._made[key] = Settings(**values | overrides)
        return self._made[key]

    def services(self, kinds: Mapping[str, Kind], **overrides: Any) -> Services:
        """Return the services of a process of its own."""
        return Services(self.settings(**overrides), GatedDatabase(self.stock), asyncio.Event(), kinds)
