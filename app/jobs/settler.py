"""Group commit of endings: what has finished is settled in one statement per flush.

The first ending is written at once; those that come within the next moment share the next flush, which nobody waits
for: a lane that has nothing else to do lets it begin. Nothing is counted before its row was written; a row that was not
ours is counted as lost. Counting goes on beside the next flush, and in turns with all else.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from app.db import DATABASE_ERRORS, Link, is_transient
from app.jobs.queue import Verdict, settle

FLUSH_MOST = 1000
GATHER_SECONDS = 0.02
ENOUGH = 100
TOLD_AT_ONCE = 200
RETRY_SECONDS = 0.2
Item = TypeVar("Item")


class Settler(Generic[Item]):
    """The endings of one tick on their way to the database; *until* (monotonic) is when trying again ends.

    *settled* is told each flush, once that is certain: every verdict with its item, and the ids that were still ours.
    """

    def __init__(
        self,
        link: Link,
        until: float | None,
        settled: Callable[[Sequence[tuple[Verdict, Item]], set[int]], None],
    ) -> None:
        self._link = link
        self._until = until
        self._settled = settled
        self._waiting: list[tuple[Verdict, Item]] = []
        self._flushing: asyncio.Task[None] | None = None
        self._untold: deque[tuple[Sequence[tuple[Verdict, Item]], set[int]]] = deque()
        self._drains = 0
        self._hurry = asyncio.Event()
        self.errors: list[str] = []

    def add(self, verdict: Verdict, item: Item) -> None:
        """Take one ending; *item* is whose it is."""
        self._waiting.append((verdict, item))
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush_all())
        elif len(self._waiting) == ENOUGH:
            self._hurry.set()

    async def drain(self) -> None:
        """Wait until all that was added is written."""
        self._drains += 1
        self._hurry.set()
        try:
            while (flushing := self._flushing) is not None:
                await asyncio.wait({flushing})
                flushing.result()
        finally:
            self._drains -= 1

    def cancel(self) -> None:
        """Write no more: leases will run out instead."""
        if self._flushing is not None:
            self._flushing.cancel()

    async def _flush_all(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:FLUSH_MOST], self._waiting[FLUSH_MOST:]
                await self._flush_beside(batch)
                if len(self._waiting) < ENOUGH:
                    await self._tell()
                    if not self._drains:
                        await self._gather()
        finally:
            while self._untold:
                self._settled(*self._untold.popleft())
            self._flushing = None

    async def _flush_beside(self, batch: Sequence[tuple[Verdict, Item]]) -> None:
        """Write *batch*, and tell meanwhile what became of those before it."""
        writing = asyncio.create_task(self._flush(batch))
        try:
            await self._tell()
            await writing
        finally:
            writing.cancel()

    async def _tell(self) -> None:
        """Tell what is certain, a little at a time: the loop has others to serve."""
        while self._untold:
            self._settled(*self._untold.popleft())
            await asyncio.sleep(0)

    async def _gather(self) -> None:
        """Let more endings come together, until there are enough of them or somebody waits for them."""
        self._hurry.clear()
        with suppress(TimeoutError):  # the moment is over: what there is by now is written
            async with asyncio.timeout(GATHER_SECONDS):
                await self._hurry.wait()

    async def _flush(self, batch: Sequence[tuple[Verdict, Item]]) -> None:
        """Settle *batch*; one bad row must not hurt its neighbours, so a refused batch is settled row by row."""
        try:
            won = await self._settle([verdict for verdict, _ in batch])
        except DATABASE_ERRORS as error:
            if len(batch) > 1 and not is_transient(error):
                for item in batch:
                    await self._flush([item])
                return
            self.errors.append(f"settle: {type(error).__name__}")
            won = set()
        for start in range(0, len(batch), TOLD_AT_ONCE):
            self._untold.append((batch[start : start + TOLD_AT_ONCE], won))

    async def _settle(self, verdicts: list[Verdict]) -> set[int]:
        """Write until it is certain: the fence makes a second try harmless: written rows do not match again."""
        while True:
            try:
                async with self._link.acquire() as connection:
                    return await settle(connection, verdicts)
            except DATABASE_ERRORS as error:
                if not is_transient(error) or self._is_over():
                    raise
                await asyncio.sleep(RETRY_SECONDS)

    def _is_over(self) -> bool:
        return self._until is not None and time.monotonic() + RETRY_SECONDS >= self._until
