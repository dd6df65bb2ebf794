"""What a command works on: the settings, one connection, or the services of a whole process."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from app.config import Settings, load_settings
from app.db import Connection, Database
from app.handlers import prepare
from app.jobs.services import Services
from app.log import setup_logging

Result = TypeVar("Result")


def on_connection(work: Callable[[Connection], Awaitable[Result]]) -> Result:
    """Return what *work* returns on one connection to DATABASE_URL, in a transaction that then commits.

    Raises ConfigError or DatabaseUnavailable before *work* begins.
    """
    return asyncio.run(_on_connection(load_settings("DATABASE_URL"), work))


async def _on_connection(settings: Settings, work: Callable[[Connection], Awaitable[Result]]) -> Result:
    database = open_database(settings)
    try:
        async with database.acquire() as connection, connection.transaction():
            return await work(connection)
    finally:
        await database.close()


def open_database(settings: Settings) -> Database:
    """Return the pool that *settings* describe; nothing is connected yet."""
    return Database(settings.dsn, pool_max=settings.pool_max, connect_timeout=settings.connect_timeout_seconds)


@asynccontextmanager
async def open_services(settings: Settings, *, is_bounded: bool = True) -> AsyncIterator[Services]:
    """Lend the services of a process that stops claiming at SIGTERM or SIGINT; close the database at the end.

    Not *is_bounded* is a worker: it has no budget that a kind's timeout could exceed.
    """
    setup_logging(settings)
    services = Services(settings, open_database(settings), asyncio.Event(), prepare(settings, is_bounded=is_bounded))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, services.stopping.set)
    try:
        yield services
    finally:
        await services.database.close()
