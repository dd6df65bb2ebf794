"""The same pump in a loop, for hosts that never sleep: endless lanes, and the tick's chores beside them.

    lanes: claim -> run -> settle -> claim ...          chores, every 15 s: rescue, expire, plan, prune, record

A job that has crashed before still runs alone: the lanes pause, and go on when it is settled. There is no budget, so
a kind may run as long as its timeout says.
"""

import asyncio
from dataclasses import dataclass, field

from app.db import DATABASE_ERRORS
from app.jobs.crew import Crew
from app.jobs.pump import Lane
from app.jobs.queue import Claimed
from app.jobs.services import Services
from app.log import get_logger
from app.summary import Budget, Summary
from app.tick import Tick

CHORE_SECONDS = 15.0
SOURCE = "worker"
IDLE_PAUSE_SECONDS = 0.05

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

    An empty lane looks again every *poll_seconds*, the chores are done every *chore_seconds*. A database that is away is waited for. Raise SchemaBehind when its tables are not ours.
    """
    books, settings = _Books(), services.settings
    budget = Budget(settings.tick_jobs, settings.tick_reminders, None)
    template = Tick(services, budget, SOURCE)
    crew = Crew(services, template.kinds, template.link, None)
    async with crew.at_work():
        lanes = template.lanes(crew, books, poll_seconds=poll_seconds)
        pumps = [asyncio.create_task(_keep_pumping(name, lane, services)) for name, lane in lanes.items()]
        while not services.stopping.is_set():
            await _chores(services, budget, crew, list(lanes.values()), books)
            await _sleep(services.stopping, chore_seconds)
        await asyncio.gather(*pumps)


async def _keep_pumping(name: str, lane: Lane, services: Services) -> None:
    """Pump *lane* until the process stops; a database that went away is tried again."""
    while not services.stopping.is_set():
        try:
            await lane.pump()
        except DATABASE_ERRORS as error:
            log.warning("lane.failed", lane=name, error=type(error).__name__)
            await _sleep(services.stopping, 1.0)


async def _chores(services: Services, budget: Budget, crew: Crew, lanes: list[Lane], books: _Books) -> None:
    tick = Tick(services, budget, SOURCE)
    counted, books.summary = books.summary, tick.summary
    tick.summary.absorb(counted)
    try:
        found = await tick.first_look()
    except DATABASE_ERRORS as error:
        log.warning("chores.failed", error=type(error).__name__)
        return
    await tick.sweep(found)
    if found.suspects_due or tick.summary.rescued:
        await _run_suspects(tick, crew, lanes)
    if tick.summary.has_changed or found.has_old or (found.tick_gap_seconds or CHORE_SECONDS) >= CHORE_SECONDS:
        books.summary = Summary(SOURCE)
        await tick.close(found)


async def _run_suspects(tick: Tick, crew: Crew, lanes: list[Lane]) -> None:
    crew.pause(is_paused=True)
    try:
        while not all(lane.is_idle for lane in lanes) and not tick.services.stopping.is_set():
            await asyncio.sleep(IDLE_PAUSE_SECONDS)
        await tick.suspects(crew)
    finally:
        crew.pause(is_paused=False)


async def _sleep(stopping: asyncio.Event, seconds: float) -> None:
    """Sleep *seconds*, or until the process is stopping."""
    try:
        async with asyncio.timeout(seconds):
            await stopping.wait()
    except TimeoutError:
        return
