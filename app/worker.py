"""The same pump in a loop, for hosts that never sleep: endless lanes, and the tick's chores beside them.

    lanes: claim -> run -> settle -> claim ...    chores, every 15 s: rescue, expire, plan, suspects, prune,
                                                  alert, record; once a minute, a heartbeat

A job that has crashed before still runs alone: the lanes pause, and go on when it is settled. There is no budget, so
a kind may run as long as its timeout says. When the process is told to stop, all of this ends within a bounded time.
"""

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.db import DATABASE_ERRORS
from app.heartbeat import Heartbeat
from app.jobs.crew import STOP_GRACE_SECONDS, Crew
from app.jobs.pump import Lane
from app.jobs.queue import Claimed
from app.jobs.services import Services
from app.lanes import job_lane, reminder_lane
from app.log import get_logger
from app.record import log_finished
from app.summary import REMINDERS, Budget, Summary
from app.tick import Tick

CHORE_SECONDS = 15.0
PULSE_SECONDS = 60.0
SOURCE = "worker"
IDLE_PAUSE_SECONDS = 0.05
SUSPECTS_A_ROUND = 10
SETTLE_SECONDS = 1.5
CUT_SECONDS = 0.5

log = get_logger()


@dataclass(eq=False)
class _Books:
    """What the lanes count into: the summary of the chores under way, which the next record then holds."""

    summary: Summary = field(default_factory=lambda: Summary(SOURCE))

    def claim(self, claimed: list[Claimed]) -> None:
        self.summary.claim(claimed)

    def report(self, claimed: Claimed, outcome: str, note: str | None) -> None:
        self.summary.report(claimed, outcome, note)


async def work(services: Services, *, poll_seconds: float = 1.0, chore_seconds: float = CHORE_SECONDS) -> None:
    """Run jobs and reminders until services.stopping is set and what runs has ended, within the stop's grace.

    An empty lane looks again every *poll_seconds*, the chores are done every *chore_seconds*. A database that is away
    is waited for. Raise SchemaBehind when its tables are not ours.
    """
    books, settings = _Books(), services.settings
    budget = Budget(settings.tick_jobs, settings.tick_reminders, None)
    template = Tick(services, budget, SOURCE)
    crew = Crew(services, template.kinds, template.link, None)
    meeting = asyncio.create_task(_meet(template))
    try:
        await _until_stop(services.stopping, [meeting])
    finally:
        await _cut([meeting])
    async with crew.at_work():
        lanes = {
            REMINDERS: reminder_lane(crew, books, None, poll_seconds),
            "jobs": job_lane(crew, books, template.rota, None, poll_seconds),
        }
        tasks = [asyncio.create_task(_keep_pumping(name, lane, services)) for name, lane in lanes.items()]
        house = _House(services, budget, crew, list(lanes.values()), books)
        tasks.append(asyncio.create_task(house.keep(chore_seconds)))
        log.info("worker.started", queues=settings.queues, kinds=sorted(template.kinds))
        try:
            await _until_stop(services.stopping, tasks)
            await asyncio.wait(tasks, timeout=STOP_GRACE_SECONDS + SETTLE_SECONDS)
        finally:
            await _cut(tasks)
            log.info("worker.stopped", left_running=len(crew.runs))


async def _meet(tick: Tick) -> None:
    """Look once before the lanes begin, so that their connections keep plans from the first claim on."""
    try:
        await tick.first_look()
        await tick.services.database.renew()
    except DATABASE_ERRORS as error:
        log.warning("worker.database_away", error=type(error).__name__)


async def _until_stop(stopping: asyncio.Event, tasks: Sequence[asyncio.Task[None]]) -> None:
    """Wait until the process is stopping; raise what one of *tasks* raised, for a worker with a dead lane is none."""
    told = asyncio.create_task(stopping.wait())
    try:
        done, _ = await asyncio.wait({told, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        told.cancel()
    for task in done - {told}:
        task.result()


async def _cut(tasks: Sequence[asyncio.Task[None]]) -> None:
    """End what did not end by itself: a database that is away must not hold up a stop."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=CUT_SECONDS)


async def _keep_pumping(name: str, lane: Lane, services: Services) -> None:
    """Pump *lane* until the process stops; a database that went away is tried again."""
    while not services.stopping.is_set():
        try:
            await lane.pump()
        except DATABASE_ERRORS as error:
            log.warning("lane.failed", lane=name, error=type(error).__name__)
            await _sleep(services.stopping, 1.0)


@dataclass(eq=False)
class _House:
    """What a tick does beside its lanes, done again and again."""

    services: Services
    budget: Budget
    crew: Crew
    lanes: list[Lane]
    books: _Books
    pulsed_at: float = -math.inf

    async def keep(self, seconds: float) -> None:
        """Do the chores every *seconds* until the process stops."""
        while not self.services.stopping.is_set():
            await self._pulse(await self._do_chores(seconds))
            await _sleep(self.services.stopping, seconds)

    async def _pulse(self, summary: Summary | None) -> None:
        """Let the dead-man's switch know, once a minute: it may drop what comes more often."""
        if time.monotonic() - self.pulsed_at >= PULSE_SECONDS:
            self.pulsed_at = time.monotonic()
            heartbeat = Heartbeat(self.services.settings, summary or Summary(SOURCE), None)
            await heartbeat.pulse(has_failed=summary is None)

    async def _do_chores(self, seconds: float) -> Summary | None:
        """Return what was done, None when the database was away."""
        tick = Tick(self.services, self.budget, SOURCE)
        counted, self.books.summary = self.books.summary, tick.summary
        tick.summary.absorb(counted)
        self._take_errors(tick.summary)
        try:
            found = await tick.first_look()
        except DATABASE_ERRORS as error:
            log.warning("chores.failed", error=type(error).__name__)
            return None
        await tick.sweep(found)
        if found.suspects_due or tick.summary.rescued:
            await self._run_suspects(tick.summary)
        is_due = (found.tick_gap_seconds or seconds) >= seconds
        if is_due or tick.summary.has_changed or tick.summary.errors or found.has_old:
            self.books.summary = Summary(SOURCE)
            await tick.close(found)
            log_finished(tick.summary)
        return tick.summary

    def _take_errors(self, summary: Summary) -> None:
        for message in (*self.crew.errors, *self.crew.settler.errors):
            summary.fail("run", message)
        self.crew.errors.clear()
        self.crew.settler.errors.clear()

    async def _run_suspects(self, summary: Summary) -> None:
        """Run some jobs that have crashed before while the lanes rest; the rest of them wait for the next round."""
        alone = Tick(self.services, Budget(SUSPECTS_A_ROUND, SUSPECTS_A_ROUND, None), SOURCE)
        self.crew.pause(is_paused=True)
        try:
            while not all(lane.is_idle for lane in self.lanes) and not self.services.stopping.is_set():
                await _sleep(self.services.stopping, IDLE_PAUSE_SECONDS)
            await alone.suspects(self.crew)
        finally:
            self.crew.pause(is_paused=False)
        summary.absorb(alone.summary)


async def _sleep(stopping: asyncio.Event, seconds: float) -> None:
    """Sleep *seconds*, or until the process is stopping."""
    try:
        async with asyncio.timeout(seconds):
            await stopping.wait()
    except TimeoutError:
        return
