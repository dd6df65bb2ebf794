"""What many handlers ask for in the same moment, asked in one statement.

    ask, ask, ask -> one statement -> to each its own answer

Nobody waits to be joined: a statement starts whenever somebody asks and none is under way; who asks meanwhile shares
the next. It starts after the question, so that what it reads is as fresh as a statement of one's own would read.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from app.db import DATABASE_ERRORS, Connection, Database, is_transient

Item = TypeVar("Item")
Answer = TypeVar("Answer")

TOGETHER_MOST = 500


class Together(Generic[Item, Answer]):
    """One sort of question to *database*: *run* answers many on one connection, in the order asked."""

    def __init__(
        self, database: Database, run: Callable[[Connection, Sequence[Item]], Awaitable[Sequence[Answer]]]
    ) -> None:
        self._database = database
        self._run = run
        self._waiting: list[tuple[Item, asyncio.Future[Answer]]] = []
        self._asking: asyncio.Task[None] | None = None

    async def ask(self, item: Item) -> Answer:
        """Return the answer to *item*, or raise what the database raised for it."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask_all())
        return await answer

    async def _ask_all(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:TOGETHER_MOST], self._waiting[TOGETHER_MOST:]
                await self._ask(batch)
        finally:
            self._asking = None
            for _, answer in self._waiting:
                answer.cancel()

    async def _ask(self, batch: list[tuple[Item, asyncio.Future[Answer]]]) -> None:
        """Ask for *batch*; one bad item must not hurt its neighbours, so a refused batch is asked one by one."""
        try:
            async with self._database.acquire() as connection:
                answers = await self._run(connection, [item for item, _ in batch])
        except DATABASE_ERRORS as error:
            if len(batch) > 1 and not is_transient(error):
                for one in batch:
                    await self._ask([one])
                return
            for _, answer in batch:
                if not answer.done():
                    answer.set_exception(error)
            return
        for (_, answer), found in zip(batch, answers, strict=True):
            if not answer.done():
                answer.set_result(found)
