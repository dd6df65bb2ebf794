"""The tick: one bounded call that does what is due and says what it did.

    survey -> rescue -> expire -> plan -> both lanes, then the suspects -> prune -> alert -> record -> Summary

Each section is isolated: one that fails is reported and the rest still run. The deadline is a promise: a watch beside
the story cuts every connection and answers with what is known by then.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import asyncpg

from app.alerts import Teller
from app.bookings import reminders
from app.channels.suspension import suspended
from app.db import DATABASE_ERRORS, Link, is_transient
from app.errors import DatabaseUnavailable, SchemaBehind
from app.handlers import fit_ours
from app.heartbeat import Heartbeat
from app.jobs import sweep
from app.jobs.browse import Survey, survey
from app.jobs.crew import Crew
from app.jobs.pump import Lane
from app.jobs.services import Services
from app.lanes import Rota, suspect_lane, tick_lanes
from app.log import get_logger
from app.record import log_finished, record
from app.summary import REMINDERS, Budget, Summary

__all__ = ["Budget", "Summary", "run"]

EMAIL = "email"
SWEEP_LIMIT = 1000
PRUNE_LIMIT = 1000
ANSWER_SLACK_SECONDS = 0.8
CUT_SECONDS = 0.1
PING_SLACK_SECONDS = 0.9
SUSPECT_PLACES = 5
STOP_ORDER = ("shutdown", "deadline", "batch", "empty")

Found = TypeVar("Found")
log = get_logger()


async def run(services: Services, budget: Budget, source: str = "api") -> Summary:
    """Do one tick within *budget* and return its summary; *source* names the caller in the record.

    Raise DatabaseUnavailable when the database cannot be reached within the connect budget, SchemaBehind when its
    tables are not ours; in both cases nothing was done. The answer comes within budget.seconds + 1 s.
    """
    tick = Tick(services, budget, source)
    heartbeat = Heartbeat(services.settings, tick.summary, tick.until and tick.until + PING_SLACK_SECONDS)
    if not budget.is_dry_run:
        heartbeat.start()
    story = asyncio.create_task(tick.story())
    try:
        await asyncio.wait({story}, timeout=None if budget.seconds is None else budget.seconds + ANSWER_SLACK_SECONDS)
    finally:
        is_cut = not story.done()
        if is_cut:
            tick.link.terminate()
            story.cancel()
            heartbeat.stop()
    if is_cut:
        tick.summary.fail("deadline", "the database did not answer in time; what was running was left to its lease")
        tick.summary.stopped_by = "deadline"
        await asyncio.wait({story}, timeout=CUT_SECONDS)  # nothing runs on after the answer
    elif (error := story.exception()) is not None:
        await heartbeat.finish(has_failed=True)
        raise error
    tick.finish()
    log_finished(tick.summary)
    await heartbeat.finish()
    return tick.summary


@dataclass(eq=False)
class Tick:
    services: Services
    budget: Budget
    source: str

    def __post_init__(self) -> None:
        settings = self.services.settings
        self.started = time.monotonic()
        self.until = None if self.budget.seconds is None else self.started + self.budget.seconds
        self.link: Link = self.services.database.link(self.until)
        self.summary = Summary(self.source)
        self.rota = Rota(random.sample(settings.queues, len(settings.queues)))  # a tick begins anywhere
        self.kinds = dict(self.services.kinds)
        if self.budget.seconds is not None:
            self.kinds = fit_ours(self.kinds, self.budget.seconds)
        self.survey: Survey | None = None
        self.teller = Teller(settings, self.link, self.until)
        self._is_untold = False

    async def story(self) -> None:
        """Tell the tick from beginning to end; each step keeps to its own failures."""
        self.link.keep()
        try:
            found = await self.first_look()
            if self.budget.is_dry_run:
                self.summary.look(found)
                return
            await self.sweep(found)
            if self._is_untold:  # told beside the lanes: a tick that is always at its deadline tells it all the same
                await asyncio.gather(self._lanes(found), self._tell())
            else:
                await self._lanes(found)
            self.link.keep()
            await self.close(found)
        finally:
            await self.link.let_go()

    async def sweep(self, found: Survey) -> None:
        """Rescue, expire and plan: what there is to run is ready then."""
        if found.has_leases_over:
            await self._section("rescue", self._rescue)
        if found.has_late:
            await self._section("expire", self._expire)
        await self._section("plan", self._plan)

    async def close(self, found: Survey) -> None:
        """Prune, look at what is left, and leave the tick's row behind."""
        if found.has_old:
            await self._section("prune", self._prune)
        if self.summary.has_changed:
            await self._section("backlog", self._last_look)
        else:
            self.summary.look(found)
        await self._tell()
        await self._section("record", self._record)

    async def first_look(self) -> Survey:
        """Survey, twice if the connection had died while it lay idle: reading twice harms nobody."""
        try:
            return await self._survey()
        except asyncpg.UndefinedTableError as error:
            raise SchemaBehind from error
        except DatabaseUnavailable:
            raise  # the connect budget is spent: it is not spent twice
        except DATABASE_ERRORS as error:
            if not is_transient(error):
                raise
        try:
            return await self._survey()
        except DATABASE_ERRORS as error:
            if not is_transient(error):
                raise
            raise DatabaseUnavailable from error

    async def _survey(self) -> Survey:
        keep = self.services.settings.done_retention_days * 86_400
        async with self.link.acquire(is_checked=False) as connection:
            found = await survey(
                connection, [*self.rota.queues, REMINDERS], list(self.kinds), keep, sinks=self.teller.names
            )
            await self.services.database.meet(connection, found.backend_pid)
            await self.services.database.measure(connection, jobs=found.jobs_bytes)
        if self.survey is None:
            self.summary.begin(found)
        self.survey = found
        self._is_untold = self._is_untold or found.has_alerts
        return found

    async def _section(self, name: str, step: Callable[[], Awaitable[Found]]) -> Found | None:
        try:
            return await step()
        except Exception as error:  # noqa: BLE001 - a section that fails is reported, the rest still run
            self.summary.fail(name, type(error).__name__)
            log.error("tick.section_failed", section=name, error=type(error).__name__)
            return None

    async def _rescue(self) -> None:
        async with self.link.acquire() as connection:
            moved = await sweep.rescue(connection, SWEEP_LIMIT, self.services.settings.max_crashes)
        self.summary.rescued = sum(1 for row in moved if row.status == "ready")
        for row in moved:
            if row.status == "dead":
                self.summary.crash(row.queue)
                log.error("job.dead", job_id=row.id, error="crashed")

    async def _expire(self) -> None:
        async with self.link.acquire() as connection:
            moved = await sweep.expire(connection, SWEEP_LIMIT)
        for row in moved:
            self.summary.count(row.queue, "expired")

    async def _plan(self) -> None:
        settings = self.services.settings
        async with self.link.acquire() as connection:
            planned = await reminders.plan(connection, settings.reminder_offsets, [EMAIL], self.budget.reminders)
            sizes = {"bookings": planned.bookings_bytes, "reminders": planned.reminders_bytes}
            await self.services.database.measure(connection, **sizes)
        self.summary.plan(planned, self.budget.reminders)
        self._is_untold = self._is_untold or planned.has_untold

    async def _lanes(self, found: Survey) -> None:
        """Run both lanes side by side and then, alone, what has crashed before."""
        summary = self.summary
        jobs_due = found.due > 0 or summary.rescued > 0
        reminders_due = found.reminders_due > 0 or summary.rescued > 0 or summary.reminders["planned"] > 0
        if not jobs_due and not reminders_due:
            summary.stopped_by = "shutdown" if self.services.stopping.is_set() else "empty"
            return
        kept = SUSPECT_PLACES if found.suspects_due or summary.rescued else 0  # a backlog must not starve them
        crew = Crew(self.services, self.kinds, self.link, self.until)
        await self.link.let_go()
        async with crew.at_work():
            lanes = tick_lanes(
                crew, summary, self.rota, self.budget, kept=kept, has_jobs=jobs_due, has_reminders=reminders_due
            )
            reasons = await asyncio.gather(*(self._pump(name, lane) for name, lane in lanes.items()))
            if kept:
                reasons += await self.suspects(crew)
        summary.stopped_by = min(reasons, key=STOP_ORDER.index)
        for message in (*crew.errors, *crew.settler.errors):
            summary.fail("run", message)

    async def suspects(self, crew: Crew) -> list[str]:
        """Run jobs that have crashed before, one at a time in this process, within what is left of each batch."""
        if self.services.suspects.locked():
            return []
        left = {
            REMINDERS: ([REMINDERS], self.budget.reminders - self.summary.reminders["claimed"]),
            "jobs": (self.rota.queues, self.budget.jobs - self.summary.jobs["claimed"]),
        }
        reasons = []
        async with self.services.suspects:
            for name, (queues, batch) in left.items():
                reasons.append(await self._pump(name, suspect_lane(crew, self.summary, queues, batch)))
        return reasons

    async def _pump(self, name: str, lane: Lane) -> str:
        return await self._section(name, lane.pump) or "deadline"

    async def _prune(self) -> None:
        keep = self.services.settings.done_retention_days * 86_400
        async with self.link.acquire() as connection:
            self.summary.pruned = await sweep.prune(connection, keep, PRUNE_LIMIT)

    async def _last_look(self) -> None:
        self.summary.look(await self._survey())
        if self.summary.reminders["released"]:
            async with self.link.acquire() as connection:
                self.summary.suspended = await suspended(connection)
        self._is_untold = self._is_untold or self.summary.missed > 0 or bool(self.summary.suspended)

    async def _tell(self) -> None:
        """Tell what is untold by what was seen so far."""
        if not self._is_untold or not self.teller.sinks or self.services.stopping.is_set():
            return
        self._is_untold = False
        await self.link.let_go()
        kinds = self.survey.unknown_kinds if self.survey else {}
        await self._section("alert", partial(self.teller.tell, kinds))
        self.summary.alerted = self.teller.told
        if self.teller.untaken:
            self.summary.fail_once("alert", "an address of ALERT_URLS took no message: it hears it at the next tick")

    async def _record(self) -> None:
        self.finish(extra_trips=1)
        async with self.link.acquire() as connection:
            await record(connection, self.summary)

    def finish(self, extra_trips: int = 0) -> None:
        """Close the summary: duration and round trips are read now."""
        self.summary.finish(time.monotonic() - self.started, self.link.round_trips + extra_trips)
