"""One connection of the pool: it counts its round trips, knows when it was last seen alive, and keeps no slow plan."""

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import asyncpg

# A prepared statement that is not there, or is there already: some pooler is between after all.
MISPLACED = (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError)

SLOW_SECONDS = 0.05
SLOW_TRIPS = 4


class CountedConnection(asyncpg.Connection):
    """A connection that counts its round trips, remembers when it was last seen alive, and keeps no plan that is slow.

    A plan that was made for an empty table may be the wrong one for a full one. `Database.meet` hears of it when the
    queue has grown; between, what takes longer than it should is planned anew: that costs little beside it. A statement
    that is not where it was prepared has not run: it is prepared anew, and *is_misplaced* tells.
    """

    __slots__ = ("_quickest", "is_misplaced", "round_trips", "seen_alive")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.round_trips = 0
        self.is_misplaced = False
        self.seen_alive = time.monotonic()
        self._quickest = SLOW_SECONDS

    async def _judged(self, ask: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
        self.round_trips += 1
        began = time.monotonic()
        try:
            answer = await ask(*args, **kwargs)
        except MISPLACED:
            self.is_misplaced = True
            if self.is_in_transaction():
                raise
            await self.reload_schema_state()
            answer = await ask(*args, **kwargs)
        took = time.monotonic() - began
        self._quickest = min(self._quickest, took)
        if took > SLOW_SECONDS and took > SLOW_TRIPS * self._quickest:
            await self.reload_schema_state()
        return answer

    def mark_alive(self) -> None:
        """Note that the server answered just now; a pool's proxy passes calls on, not attributes."""
        self.seen_alive = time.monotonic()

    async def fetch(self, *args: Any, **kwargs: Any) -> Any:
        return await self._judged(super().fetch, *args, **kwargs)

    async def fetchrow(self, *args: Any, **kwargs: Any) -> Any:
        return await self._judged(super().fetchrow, *args, **kwargs)

    async def fetchval(self, *args: Any, **kwargs: Any) -> Any:
        return await self._judged(super().fetchval, *args, **kwargs)

    async def execute(self, *args: Any, **kwargs: Any) -> Any:
        return await self._judged(super().execute, *args, **kwargs)


def has_left(connection: Any) -> bool:
    """Say whether *connection* is none, or one that was cut: such a one has left the pool by itself."""
    return getattr(connection, "round_trips", None) is None


def is_open(connection: Any) -> bool:
    """Say whether *connection* can be asked something."""
    return not has_left(connection) and not connection.is_closed()


def cut(connection: Any) -> None:
    """Terminate *connection*; one that its server has ended left the pool by itself, and may not even be asked to."""
    with suppress(asyncpg.InterfaceError):
        connection.terminate()
