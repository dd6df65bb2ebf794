"""Connections that stop before every statement: what our own code is handed in place of a pool's.

    Database.link -> Link.acquire (both ours, as they are) -> Pool.acquire -> GatedConnection -> a real connection

A write outside a transaction may be split: BEGIN and the statement are one step, COMMIT is the next. PostgreSQL does
the same, only faster; between the two, everybody else meets its locks.
"""

import asyncio
import re
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg

from app.db import Database
from tests.evidence.explorer.scheduler import ACTOR, Actor, Scheduler

WRITES = re.compile(r"\b(INSERT|UPDATE|DELETE|enqueue_job)\b")
POOL_MAX = 5
SETTINGS = {
    "synchronous_commit": "off",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "deadlock_timeout": "20ms",
    "application_name": "explorer",
}


@dataclass(frozen=True)
class Freeze:
    """A FREEZE that was granted: at which step, to whom, and what it named."""

    index: int
    actor: Actor
    named: frozenset[str]


def mentioned(args: Any) -> frozenset[str]:
    """Return every text and time in *args*, however deep, as text."""
    if isinstance(args, list | tuple):
        return frozenset[str]().union(*(mentioned(item) for item in args))
    if isinstance(args, datetime):
        return frozenset({args.isoformat()})
    return frozenset({args}) if isinstance(args, str) else frozenset()


class Stock:
    """Open connections that all orders share; the *scheduler* is the one of the order under way."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._free: list[Any] = []
        self._lent: dict[Any, Actor | None] = {}
        self.scheduler: Scheduler | None = None
        self.freezes: list[Freeze] = []

    async def take(self) -> Any:
        """Return a free connection, or a new one."""
        actor = ACTOR.get()
        if not self._free:
            await self._open()
        raw = self._free.pop()
        self._lent[raw] = actor
        return raw

    async def _open(self) -> None:
        if self.scheduler is not None:
            self.scheduler.busy += 1
        try:
            self._free.append(await asyncpg.connect(self._dsn, server_settings=SETTINGS))
        finally:
            if self.scheduler is not None:
                self.scheduler.busy -= 1

    def give_back(self, raw: Any) -> None:
        """Take *raw* back, unless its actor died with it: then `bury` does."""
        actor = self._lent.get(raw)
        if actor is None or not actor.is_dead:
            self._lent.pop(raw, None)
            self._free.append(raw)

    async def bury(self, actor: Actor) -> None:
        """Do to the connections of a dead *actor* what the server does: roll back what was open."""
        for raw in [raw for raw, holder in self._lent.items() if holder is actor]:
            if raw.is_in_transaction():
                await raw.execute("ROLLBACK")
            del self._lent[raw]
            self._free.append(raw)

    async def close(self) -> None:
        """Close all of them."""
        for raw in (*self._free, *self._lent):
            raw.terminate()


class GatedDatabase(Database):
    """The database of one actor: ours, but its pool lends gated connections."""

    def __init__(self, stock: Stock) -> None:
        super().__init__("postgresql://unused", pool_max=POOL_MAX)
        self._gated = Pool(stock)

    async def open_pool(self) -> Any:
        """Return the pool of gated connections."""
        return self._gated


class Pool:
    """What `Link` needs of a pool: at most five connections, taken in the order of asking."""

    def __init__(self, stock: Stock) -> None:
        self._stock = stock
        self._places = asyncio.Semaphore(POOL_MAX)

    async def acquire(self, timeout: float | None = None) -> "GatedConnection":  # noqa: ASYNC109 - asyncpg's own name
        """Lend a connection as soon as a place is free."""
        async with asyncio.timeout(timeout):
            await self._places.acquire()
        return GatedConnection(self._stock, await self._stock.take())

    async def release(self, connection: "GatedConnection", **_limit: float) -> None:
        """Take it back."""
        self._stock.give_back(connection.raw)
        self._places.release()


class GatedConnection:
    """A real connection whose every statement waits for its turn."""

    def __init__(self, stock: Stock, raw: Any) -> None:
        self._stock = stock
        self.raw = raw
        self.round_trips = self.slow = self.misplaced = 0
        self._is_in_transaction = False

    @property
    def seen_alive(self) -> float:
        """Now: an idle check would be a step of nobody's code."""
        return time.monotonic()

    def mark_alive(self) -> None:
        """Say that the server answered; nothing depends on it here."""

    def get_server_pid(self) -> int:
        """Return nobody's, as a pooler does: many actors share this connection's server."""
        return 0

    def is_closed(self) -> bool:
        """Whether it is closed."""
        closed: bool = self.raw.is_closed()
        return closed

    def terminate(self) -> None:
        """Cut it; only a killed actor does, and `Stock.bury` looks after its connections."""

    async def fetch(self, sql: str, *args: Any) -> Any:
        """Run *sql* at its turn and return its rows."""
        return await self._run(self.raw.fetch, sql, args)

    async def fetchrow(self, sql: str, *args: Any) -> Any:
        """Run *sql* at its turn and return its first row."""
        return await self._run(self.raw.fetchrow, sql, args)

    async def fetchval(self, sql: str, *args: Any) -> Any:
        """Run *sql* at its turn and return its first value."""
        return await self._run(self.raw.fetchval, sql, args)

    async def execute(self, sql: str, *args: Any) -> Any:
        """Run *sql* at its turn and return its tag."""
        return await self._run(self.raw.execute, sql, args)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Begin with the first statement; the end is a step of its own."""
        self._is_in_transaction = True
        try:
            yield
        except BaseException:  # raised again: an actor may be killed at any step
            await self._finish("ROLLBACK")
            raise
        else:
            await self._finish("COMMIT")

    async def _finish(self, verb: str) -> None:
        self._is_in_transaction = False
        async with self._turn(verb):
            await self.raw.execute(verb)

    def _turn(self, name: str) -> Any:
        scheduler = self._stock.scheduler
        return nullcontext() if scheduler is None else scheduler.turn(name, self.raw.get_server_pid())

    async def _run(self, method: Any, sql: str, args: tuple[Any, ...]) -> Any:
        self.round_trips += 1
        name = name_of(sql)
        async with self._turn(name) as step:
            if self._is_in_transaction and not self.raw.is_in_transaction():
                await self.raw.execute("BEGIN")
            if step is not None and name == "FREEZE":
                self._stock.freezes.append(Freeze(step.index, step.actor, mentioned(args)))
            is_split = step is not None and step.is_split and not self._is_in_transaction and bool(WRITES.search(sql))
            if not is_split:
                return await method(sql, *args)
            await self.raw.execute("BEGIN")
            try:
                result = await method(sql, *args)
            except BaseException:  # raised again: an actor may be killed at any step
                await self.raw.execute("ROLLBACK")
                raise
        async with self._turn(f"{name} commit"):
            await self.raw.execute("COMMIT")
        return result


NAMES: dict[str, str] = {}


def name_of(sql: str) -> str:
    """Return the name of the constant that holds *sql*, or its first words; the two that settle are one step."""
    if sql not in NAMES:
        for module in [module for name, module in sys.modules.items() if name.startswith("app.")]:
            NAMES.update(
                {text: name for name, text in vars(module).items() if name.isupper() and isinstance(text, str)}
            )
        NAMES.setdefault(sql, " ".join(sql.split()[:3]))
    return NAMES[sql].removesuffix("_DONE")
