"""One connection of the pool: it counts its round trips and what was slow, and knows when it was last seen alive."""

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
    """A connection that remembers when it was last seen alive, and counts *round_trips* and what tells of bad plans.

    *slow* are the statements that took longer than they should: a plan that was made for an empty table may be the
    wrong one for a full one. *misplaced* are those that were not where they had been prepared: they had not run, and
    were prepared anew, unless that would have been in a transaction that had failed.
    """

    __slots__ = ("_quickest", "misplaced", "round_trips", "seen_alive", "slow")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.round_trips = self.slow = self.misplaced = 0
        self.seen_alive = time.monotonic()
        self._quickest = SLOW_SECONDS

    async def _counted(self, ask: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
        self.round_trips += 1
        began = time.monotonic()
        try:
            answer = await ask(*args, **kwargs)
        except MISPLACED:
            self.misplaced += 1
            if self.is_in_transaction():
                raise
            await self.reload_schema_state()
            answer = await ask(*args, **kwargs)
        took = time.monotonic() - began
        self._quickest = min(self._quickest, took)
        self.slow += took > SLOW_SECONDS and took > SLOW_TRIPS * self._quickest
        return answer

    def mark_alive(self) -> None:
        """Note that the server answered just now; a pool's proxy passes calls on, not attributes."""
        self.seen_alive = time.monotonic()

    async def fetch(self, *args: Any, **kwargs: Any) -> Any:
        return await self._counted(super().fetch, *args, **kwargs)

    async def fetchrow(self, *args: Any, **kwargs: Any) -> Any:
        return await self._counted(super().fetchrow, *args, **kwargs)

    async def fetchval(self, *args: Any, **kwargs: Any) -> Any:
        return await self._counted(super().fetchval, *args, **kwargs)

    async def execute(self, *args: Any, **kwargs: Any) -> Any:
        return await self._counted(super().execute, *args, **kwargs)


def has_left(connection: Any) -> bool:
    """Say whether *connection* is none, or one that was cut: such a one has left the pool by itself."""
    return getattr(connection, "round_trips", None) is None


def is_open(connection: Any) -> bool:
    """Say whether *connection* can be asked something."""
    return not has_left(connection) and not connection.is_closed()


def cut(connection: Any) -> None:
    """Terminate *connection*; one that its server has ended left the pool by itself, and may not even be asked to."""
    with suppress(asyncpg.InterfaceError):  # it has left meanwhile: there is nothing to end
        connection.terminate()
