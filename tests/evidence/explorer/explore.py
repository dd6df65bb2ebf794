"""Play orders by their seed and judge each: the seed says who plays, what there is, and who goes next.

seed -> scenario + world + schedule -> run -> ticks until nothing is left -> check -> problems
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from app.jobs import settler
from app.tick import Budget, run
from tests.evidence.explorer.checker import check
from tests.evidence.explorer.scenarios import SCENARIOS
from tests.evidence.explorer.scheduler import STUCK_SECONDS, Scheduler, Stuck
from tests.evidence.explorer.stage import Stage
from tests.evidence.explorer.world import Recorder, World, kinds_of

LAST_TICKS_MOST = 20
LEASES_END = "UPDATE jobs SET locked_until = now() - interval '1 second' WHERE status = 'running'"
WAITS_END = "UPDATE jobs SET run_at = now() WHERE status = 'ready' AND run_at > now()"
IS_OPEN = "SELECT EXISTS (SELECT 1 FROM jobs WHERE status IN ('ready', 'running'))"
IS_EXPIRED = "SELECT count(*) FROM jobs WHERE status = 'running' AND locked_until <= now()"


@dataclass
class Order:
    """One order that was played: its *seed*, what went next at each step, and what was wrong after it."""

    seed: int
    scenario: str
    trace: list[str]
    problems: list[str]

    def story(self) -> str:
        """Tell how it failed and how to play it again."""
        lines = [f"order {self.seed} ({self.scenario}) broke a promise:"]
        lines += [f"  {problem}" for problem in self.problems]
        lines += [f"  {number:3} {step}" for number, step in enumerate(self.trace)]
        again = f"EXPLORE_SEED={self.seed} pytest -n 0 -s tests/evidence/explorer -k replay"
        return "\n".join([*lines, f"again: {again}"])


@dataclass
class Explorer:
    """Plays orders on one *stage*; *patience* is how long an order in which nobody can go on is waited for."""

    stage: Stage
    recorder: Recorder
    patience: float = STUCK_SECONDS
    statements: Counter[str] = field(default_factory=Counter)

    async def play(self, seed: int) -> Order:
        """Play one order and judge it."""
        rng = random.Random(f"dormouse {seed}")  # noqa: S311 - a schedule that can be drawn again, no secret
        name = list(SCENARIOS)[seed % len(SCENARIOS)]
        scheduler = Scheduler(rng, self.stage.is_blocked, self.patience)
        self.stage.stock.scheduler, self.stage.stock.freezes = scheduler, []
        world = World(rng, self.stage, scheduler, await self.stage.reset())
        world.kinds = kinds_of(lambda: world)
        self.recorder.world = world
        with capture_logs():
            problems = await self._problems(world, name)
        for actor in scheduler.actors:
            if actor.is_dead:
                await self.stage.stock.bury(actor)
        self.statements.update(step.split(" ", 1)[1] for step in scheduler.trace)
        return Order(seed, name, scheduler.trace, problems)

    async def _problems(self, world: World, name: str) -> list[str]:
        try:
            await SCENARIOS[name](world)
            await world.scheduler.run()
            return await self._finish(world) + await check(world)
        except Stuck as error:
            return [f"stuck: {error}"]
        except Exception as error:  # noqa: BLE001 - an actor that broke is a finding about this very order
            return [f"an actor failed: {type(error).__name__}: {error}"]

    async def _finish(self, world: World) -> list[str]:
        """Let time pass and tick until nothing is open, as a scheduler would."""
        admin, world.troubles = self.stage.admin, ()
        await admin.execute(LEASES_END)
        for _ in range(LAST_TICKS_MOST):
            await admin.execute(WAITS_END)
            summary = await run(world.services(reminder_offsets=world.offsets), Budget(100, 100, 25.0), "explorer")
            world.summaries.append(summary)
            if late := await admin.fetchval(IS_EXPIRED):
                return [f"{late} leases are over and stay so after a tick"]
            if not await admin.fetchval(IS_OPEN) and not summary.has_changed:
                return []
        return [f"{LAST_TICKS_MOST} ticks later there is still work"]

    async def search(self, seeds: range, seconds: float | None = None) -> Order | None:
        """Play *seeds* in turn, for *seconds* at most, and return the first order that broke a promise."""
        until = None if seconds is None else time.monotonic() + seconds
        for seed in seeds:
            order = await self.play(seed)
            if order.problems:
                return order
            if until is not None and time.monotonic() > until:
                break
        return None


@asynccontextmanager
async def open_explorer(dsn: str, patience: float = STUCK_SECONDS) -> AsyncIterator[Explorer]:
    """Open a stage on the fresh database *dsn* until the block ends; no clock says when endings are written."""
    recorder = Recorder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settler, "GATHER_SECONDS", 0.0)
        async with Stage(dsn).open(recorder) as stage:
            yield Explorer(stage, recorder, patience)
        await asyncio.sleep(0)
