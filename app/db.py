"""The database: one pool, one way to take a connection, one judge of what is worth another try.

Every wait has a limit. A statement is bounded by the pool's command_timeout (asyncpg 0.32 needs it: without it the
cancel request of a black-holed connection is itself unbounded), taking a connection by the limit of `acquire`, and
what a tick still holds at its deadline is terminated. Nothing here is session state: a transaction pooler is fine.
Where there is none, the server keeps the plans of statements, which spares half of a short tick.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import asyncpg

from app.connection import MISPLACED, CountedConnection, cut, has_left, is_open
from app.errors import DatabaseUnavailable

if TYPE_CHECKING:
    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record] | asyncpg.pool.PoolConnectionProxy[asyncpg.Record]
    Pool: TypeAlias = asyncpg.Pool[asyncpg.Record]
else:
    Connection = asyncpg.Connection
    Pool = asyncpg.Pool

CONNECT_TRY_SECONDS = 5.0
RETRY_PAUSE_SECONDS = 0.25
IDLE_CHECK_SECONDS = 1.0
PING_SECONDS = 2.0
IDLE_LIFETIME_SECONDS = 60.0
PLANS_KEPT = 100
PLAN_LIFETIME_SECONDS = 60
SMALL_BYTES = 65_536

# 57P01-57P03 shutdown and start-up, 53300 too many connections, 40001 and 40P01 lost races, 08xxx connection.
TRANSIENT = (
    *MISPLACED,
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.IdleSessionTimeoutError,
    asyncpg.InternalClientError,
    ConnectionError,
    TimeoutError,
    OSError,
)

DATABASE_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, DatabaseUnavailable, *TRANSIENT)


def is_transient(error: BaseException) -> bool:
    """Say whether *error* comes from the connection or the moment, so that the same call may work again.

    A protocol violation (08P01) is configuration, such as a start-up parameter that PgBouncer does not take; but by the
    same code PgBouncer says that all its places were taken for too long.
    """
    if isinstance(error, asyncpg.ProtocolViolationError):
        return "query_wait_timeout" in str(error)
    if isinstance(error, asyncpg.InterfaceError):
        return "closed" in str(error) or "closing" in str(error)
    return isinstance(error, (*TRANSIENT, DatabaseUnavailable))


async def _leave_as_is(_connection: Any) -> None:
    """Spare the reset statement at each release: no session state is ever set."""


class Database:
    """The pool of one process, opened at the first need."""

    def __init__(
        self, dsn: str, *, pool_max: int = 5, connect_timeout: float = 15.0, command_timeout: float = 5.0
    ) -> None:
        self._dsn = dsn
        self._pool_max = pool_max
        self._command_timeout = command_timeout
        self._pool: Pool | None = None
        self._keeps_plans = False
        self._is_new = False
        self._is_distrusted = False
        self._planned_for: dict[str, int] = {}
        self.connect_timeout = connect_timeout

    def link(self, until: float | None = None) -> "Link":
        """Return a counted way into the pool whose every wait ends at *until* (time.monotonic seconds)."""
        return Link(self, until)

    @asynccontextmanager
    async def acquire(self, limit: float | None = None) -> AsyncIterator[Connection]:
        """Lend a connection, waiting at most *limit* seconds for one; raise DatabaseUnavailable after that.

        A refused connection is tried again until then: a sleeping database takes seconds to wake.
        """
        until = time.monotonic() + (self.connect_timeout if limit is None else limit)
        async with self.link(until).acquire() as connection:
            yield connection

    async def open_pool(self) -> Pool:
        """Return the pool; no connection is made before one is asked for."""
        if self._pool is None:
            self._pool = asyncpg.create_pool(
                self._dsn,
                min_size=0,
                max_size=self._pool_max,
                max_inactive_connection_lifetime=IDLE_LIFETIME_SECONDS,
                reset=_leave_as_is,
                connection_class=CountedConnection,
                **self._options(),
            )
            await self._pool
        return self._pool

    def _options(self) -> dict[str, Any]:
        return {
            "statement_cache_size": PLANS_KEPT if self._keeps_plans else 0,
            "max_cached_statement_lifetime": PLAN_LIFETIME_SECONDS,
            "command_timeout": self._command_timeout,
            "timeout": min(CONNECT_TRY_SECONDS, self.connect_timeout),
            "server_settings": {"application_name": "dormouse"},
        }

    async def meet(self, connection: Connection, backend_pid: int) -> None:
        """Keep plans, on connections made from now on, if *connection* is answered by the very session it was given.

        *backend_pid* is what pg_backend_pid() said on it: a pooler makes up the number that it gives at the start.
        The connections of before are left alone until the second meeting: a process that lives for one tick would only
        pay for new ones.
        """
        is_direct = connection.get_server_pid() == backend_pid and not self._is_distrusted
        if is_direct != self._keeps_plans:
            await self._keep_plans(is_direct=is_direct)
        else:
            await self.renew()

    async def measure(self, connection: Connection, **tables: int) -> None:
        """Have all planned anew when one of *tables*, name and bytes, has doubled since that was done last."""
        grown = {name: size for name, size in tables.items() if size > 2 * self._planned_for.get(name, SMALL_BYTES)}
        self._planned_for |= grown
        if grown:
            await self.plan_anew(connection)

    async def plan_anew(self, connection: Connection) -> None:
        """Forget the plans of *connection* and all others, if any are kept; what is known of types goes with them."""
        if self._keeps_plans:
            await connection.reload_schema_state()

    async def _keep_plans(self, *, is_direct: bool) -> None:
        if self._pool is not None:
            self._keeps_plans = self._is_new = is_direct
            self._pool.set_connect_args(self._dsn, **self._options())
            if not is_direct:
                await self._pool.expire_connections()

    async def distrust(self) -> None:
        """Keep no plans any more, whoever answers: a kept one was not found where it was made."""
        if not self._is_distrusted:
            self._is_distrusted = True
            await self._keep_plans(is_direct=False)

    async def renew(self) -> None:
        """Replace connections that were made before it was known that plans are kept, each as it is lent next."""
        if self._is_new and self._pool is not None:
            self._is_new = False
            await self._pool.expire_connections()

    async def close(self, limit: float = 1.0) -> None:
        """Close the pool within *limit* seconds, by force if need be."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        try:
            async with asyncio.timeout(limit):
                await pool.close()
        except TimeoutError:
            pool.terminate()


class Link:
    """One tick's way into the pool: counted, bounded by its deadline, and cut for good by `terminate`.

    Between `keep` and `let_go` a connection stays with the link for the next step: a way through the pool costs more
    than a short statement. Who waits for anything but the database lets go first.
    """

    def __init__(self, database: Database, until: float | None) -> None:
        self._database = database
        self._until = until
        self._held: set[Any] = set()
        self._kept: Any = None
        self._keeps = False
        self.round_trips = 0

    @asynccontextmanager
    async def acquire(self, limit: float | None = None, *, is_checked: bool = True) -> AsyncIterator[Connection]:
        """Lend a connection within *limit* seconds and the deadline; raise DatabaseUnavailable after that.

        One that lay idle is asked first whether it lives, unless the caller, not *is_checked*, can start anew itself.
        """
        connection = await self._use_kept() or await self._take(self._limit(limit), is_checked=is_checked)
        trips, slow, is_clean = connection.round_trips, connection.slow, False
        self._held.add(connection)
        try:
            yield connection
            is_clean = True
        finally:
            self._held.discard(connection)
            if not has_left(connection):  # one that was cut counts nothing any more
                self.round_trips += connection.round_trips - trips
                if connection.misplaced:
                    await self._database.distrust()
                elif connection.slow > slow:
                    await self._database.plan_anew(connection)
                if is_clean and self._keeps and self._kept is None and is_open(connection):
                    self._kept = connection
                else:
                    await self._give_back(connection)

    def keep(self) -> None:
        """Keep the connection that is given back next."""
        self._keeps = True

    async def let_go(self) -> None:
        """Give back what is kept, and keep no more."""
        self._keeps = False
        connection, self._kept = self._kept, None
        if not has_left(connection):
            await self._give_back(connection)

    def terminate(self) -> None:
        """Cut every connection that it holds: the last word when a deadline has passed."""
        for connection in (*self._held, self._kept):
            if not has_left(connection):
                cut(connection)

    async def _use_kept(self) -> Any:
        """Return what is kept, None when there is nothing, or nothing that lives."""
        connection, self._kept = self._kept, None
        if is_open(connection):
            return connection
        if not has_left(connection):
            await self._give_back(connection)
        return None

    def _limit(self, limit: float | None) -> float:
        asked = self._database.connect_timeout if limit is None else limit
        return asked if self._until is None else min(asked, self._until - time.monotonic())

    async def _take(self, limit: float, *, is_checked: bool) -> Any:
        pool = await self._database.open_pool()
        until = time.monotonic() + limit
        while (left := until - time.monotonic()) > 0:
            try:
                connection: Any = await pool.acquire(timeout=left)
            except DATABASE_ERRORS as error:
                if not is_transient(error):
                    raise
                await asyncio.sleep(min(RETRY_PAUSE_SECONDS, max(0.0, until - time.monotonic())))
                continue
            if not is_checked or await self._is_alive(connection):
                return connection
            cut(connection)
            await pool.release(connection)
        raise DatabaseUnavailable(f"the database could not be reached within {limit:.0f} s")

    async def _is_alive(self, connection: Any) -> bool:
        if time.monotonic() - connection.seen_alive < IDLE_CHECK_SECONDS:
            return not connection.is_closed()
        try:
            await connection.execute("SELECT 1", timeout=PING_SECONDS)
        except DATABASE_ERRORS:
            return False
        self.round_trips += 1
        return True

    async def _give_back(self, connection: Any) -> None:
        connection.mark_alive()
        pool = await self._database.open_pool()
        try:
            await pool.release(connection, timeout=PING_SECONDS)
        except DATABASE_ERRORS:
            cut(connection)
