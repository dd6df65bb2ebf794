"""Who goes next: actors stop before every statement, and a seeded scheduler lets one of them take one step.

    actor --turn--> waiting --granted--> (its statement) --> done | blocked on a lock --> done

All shared state is in PostgreSQL, so the order of statements is the schedule. A statement that waits for another's lock
is found by asking PostgreSQL, not by a clock: the same seed gives the same order on a slow machine.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

BLOCKED_SECONDS = 0.02
STUCK_SECONDS = 8.0
STEPS_MOST = 3000
DIRECTED_SPLIT = 0.7


class Stuck(AssertionError):
    """An order did not come to its end."""


@dataclass(eq=False)
class Actor:
    """One process of the play; a heavier *weight* is let go more often."""

    name: str
    number: int
    weight: float = 1.0
    is_dead: bool = False
    tasks: list["asyncio.Task[Any]"] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        """Whether nothing of it runs any more."""
        return all(task.done() for task in self.tasks)


@dataclass(eq=False)
class Step:
    """One statement about to be sent; *is_split* leaves its commit to a step of its own."""

    actor: Actor
    name: str
    pid: int | None
    task: "asyncio.Task[Any]"
    granted: "asyncio.Future[None]"
    done: "asyncio.Future[None]"
    is_split: bool = False
    index: int = -1


ACTOR: ContextVar[Actor | None] = ContextVar("actor", default=None)
IsBlocked = Callable[[int], Awaitable[bool]]


class Scheduler:
    """One order of steps, drawn by *rng*: also how often a commit is a step of its own, and how long a step takes."""

    def __init__(self, rng: random.Random, is_blocked: IsBlocked, patience: float = STUCK_SECONDS) -> None:
        self._rng = rng
        self._is_blocked = is_blocked
        self._split = rng.choice((0.0, 0.5, 0.9))
        self.step_seconds = rng.choice((0.001, 0.02, 0.1, 0.3))
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Step] = []
        self._blocked: list[Step] = []
        self.busy = 0
        self.actors: list[Actor] = []
        self.trace: list[str] = []
        self.last: dict[tuple[Any, str], int] = {}
        self.phases: list[tuple[Actor, int | str]] = []
        self.kills: list[tuple[int, Actor, Callable[[Actor], Awaitable[None]]]] = []

    @property
    def index(self) -> int:
        """The number of steps granted so far."""
        return len(self.trace)

    def add(self, name: str, play: Coroutine[Any, Any, None], weight: float = 1.0) -> Actor:
        """Let *play* take part as an actor of its own; it begins when `run` does."""
        actor = Actor(name, len(self.actors), weight)
        self.actors.append(actor)
        token = ACTOR.set(actor)
        actor.tasks.append(asyncio.create_task(play, name=name))
        ACTOR.reset(token)
        return actor

    @asynccontextmanager
    async def turn(self, name: str, pid: int | None = None) -> AsyncIterator[Step | None]:
        """Wait until this step is granted; outside a play there is nothing to wait for, and the step is None."""
        actor = ACTOR.get()
        if actor is None:
            yield None
            return
        if actor.is_dead:
            raise asyncio.CancelledError
        task = asyncio.current_task()
        assert task is not None
        step = Step(actor, name, pid, task, self._loop.create_future(), self._loop.create_future())
        self._waiting.append(step)
        try:
            await step.granted
            yield step
        finally:
            if step in self._waiting:
                self._waiting.remove(step)
            step.done.set_result(None)

    async def run(self) -> None:
        """Grant step after step until all actors have ended; raise Stuck, or what an actor raised."""
        self._loop.set_task_factory(_note_task)
        try:
            while True:
                await self._quiet()
                await self._kill_those_due()
                if all(actor.is_done for actor in self.actors):
                    break
                if self._waiting:
                    await self._grant(self._pick())
                else:
                    await self._idle()
        finally:
            self._loop.set_task_factory(None)
            await self._end()
        self._raise_failures()

    def _pick(self) -> Step:
        # Of two that one commit lets go on, either may come back first: the draw must not depend on that.
        self._waiting.sort(key=lambda step: (step.actor.number, step.name, step.actor.tasks.index(step.task)))
        directed = self._of_this_phase()
        steps = directed or self._waiting
        step = self._rng.choices(steps, [step.actor.weight for step in steps])[0]
        step.is_split = self._rng.random() < (max(self._split, DIRECTED_SPLIT) if directed else self._split)
        return step

    def _of_this_phase(self) -> list[Step]:
        """Return what the phase's actor may do: so many steps, or all until one of the name waits to be taken."""
        while self.phases:
            actor, until = self.phases.pop(0)
            steps = [step for step in self._waiting if step.actor is actor]
            if isinstance(until, str):
                if steps and all(step.name != until for step in steps):
                    self.phases.insert(0, (actor, until))
                    return steps
            elif steps and until > 0:
                self.phases.insert(0, (actor, until - 1))
                return steps
        return []

    async def _grant(self, step: Step) -> None:
        self._waiting.remove(step)
        step.index = self.index
        if step.index > STEPS_MOST:
            raise Stuck(f"{STEPS_MOST} steps and no end: {self.trace[-40:]}")
        self.trace.append(f"{step.actor.name} {step.name}")
        self.last[step.task, step.name] = step.index
        step.granted.set_result(None)
        if not await self._done_or_blocked(step):
            self.trace[-1] += " (blocked)"
            self._blocked.append(step)
        for held in list(self._blocked):
            if await self._done_or_blocked(held):
                self._blocked.remove(held)

    async def _done_or_blocked(self, step: Step) -> bool:
        """Wait until *step* is done, and say so; False when it waits for a lock that somebody holds."""
        for _ in range(round(STUCK_SECONDS / BLOCKED_SECONDS)):
            await asyncio.wait({step.done}, timeout=BLOCKED_SECONDS / 5)
            if step.done.done():
                return True
            if step.pid is not None and await self._is_blocked(step.pid):
                return False
            await asyncio.wait({step.done}, timeout=BLOCKED_SECONDS)
        raise Stuck(f"{step.actor.name} {step.name} neither ends nor waits for a lock")

    async def _quiet(self) -> None:
        """Let Python run until every task waits for a turn, a lock or a timer.

        The loop's own list is the only exact answer: when it is empty, nothing can run before the next step.
        """
        while self._loop._ready or self.busy:  # type: ignore[attr-defined]  # noqa: ASYNC110, SLF001 - see above
            await asyncio.sleep(0)

    async def _idle(self) -> None:
        """Nobody waits for a turn: a lock's holder is being found out as a deadlock, or a timer runs."""
        until = self._loop.time() + self._patience
        while not self._waiting and not all(actor.is_done for actor in self.actors):
            if self._loop.time() > until:
                left = [task.get_name() for task in self._unfinished()]
                raise Stuck(f"nobody can go on; left are {left}; last steps: {self.trace[-30:]}")
            await asyncio.wait(self._unfinished(), timeout=0.002)
            self._blocked = [step for step in self._blocked if not step.done.done()]

    def _unfinished(self) -> "list[asyncio.Task[Any]]":
        return [task for actor in self.actors for task in actor.tasks if not task.done()]

    async def _kill_those_due(self) -> None:
        """End an actor as kill -9 does: nothing of it runs on, what it had not committed is gone."""
        for kill in list(self.kills):
            at, actor, bury = kill
            if at <= self.index and not any(step.actor is actor for step in self._blocked):
                self.kills.remove(kill)
                if not actor.is_done:
                    self.trace.append(f"{actor.name} KILLED")
                    actor.is_dead = True
                    await self._cancel(actor)
                    await bury(actor)

    async def _cancel(self, actor: Actor) -> None:
        for _ in range(50):
            left = [task for task in actor.tasks if not task.done()]
            if not left:
                return
            for task in left:
                task.cancel()
            await asyncio.wait(left, timeout=0.05)
        raise Stuck(f"{actor.name} does not die")

    async def _end(self) -> None:
        for actor in self.actors:
            if not actor.is_done:
                actor.is_dead = True
                await self._cancel(actor)

    def _raise_failures(self) -> None:
        for actor in self.actors:
            for task in actor.tasks:
                if not actor.is_dead and task.get_name() == actor.name and not task.cancelled():
                    task.result()


def _note_task(loop: Any, coroutine: Any, **options: Any) -> "asyncio.Task[Any]":
    """Make a task and note it with the actor in whose name it runs."""
    task = asyncio.Task(coroutine, loop=loop, **options)
    context = options.get("context")
    actor = ACTOR.get() if context is None else context.get(ACTOR)
    if actor is not None:
        actor.tasks.append(task)
    return task
