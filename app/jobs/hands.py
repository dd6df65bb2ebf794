"""The hands of a lane: tasks that each run one job after the other.

    bring -> hand: next -> run -> next -> run ... -> gone        one more whenever all that are there wait for something

A task of its own for every job would cost more than a quick job does. What a job leaves behind in its task must never
reach the next one: a hand that was cancelled, or whose context variables a job has changed, takes no other job.
"""

import asyncio
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from app.jobs.crew import Crew, Run

TURN_SECONDS = 0.001


class Hands:
    """Those of one lane: *take* gives the next run, None for no more; *places* says how many more may start now."""

    def __init__(self, crew: Crew, take: Callable[[], Run | None], places: Callable[[], int]) -> None:
        self._crew = crew
        self._take = take
        self._places = places
        self._coming = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def bring(self) -> None:
        """Bring a hand for what may start now: one at first, then as many again as are busy, until all is taken."""
        if self._coming:
            return
        wanted = min(self._places(), max(1, len(self._tasks)))
        if wanted <= 0:
            return
        loop, context = asyncio.get_running_loop(), self._crew.context
        for _ in range(wanted):
            task = loop.create_task(self._work(), context=context.copy())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._coming = wanted
        loop.call_soon(
            self.bring, context=context
        )  # after their first steps: what is left by then has found every hand busy

    async def _work(self) -> None:
        self._coming -= 1
        task: Any = asyncio.current_task()
        turn_ends = time.monotonic() + TURN_SECONDS
        while (run := self._take()) is not None:
            await self._crew.run(run, task)
            if task.cancelling() or copy_context() != self._crew.context:
                self.bring()
                return
            if run.has_waited:
                turn_ends = time.monotonic() + TURN_SECONDS
            elif run.ended_at > turn_ends:
                await asyncio.sleep(0)
                turn_ends = time.monotonic() + TURN_SECONDS
