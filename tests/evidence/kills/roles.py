"""What a forked process does with its life: ticks without end, one tick that may be stopped, or the whole server."""

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any

import structlog

from app import tick
from app.cli import serving
from app.config import Settings
from app.db import Database
from app.handlers import load_kinds
from app.jobs.services import Services
from app.tick import Budget
from tests.evidence.kills.deeds import HANDLERS

# What the parent imports besides, so that a child which serves pays for none of it.
SERVER = ("app.main", "uvicorn.lifespan.on", "uvicorn.loops.uvloop", "uvicorn.protocols.http.httptools_impl")
PAUSE_SECONDS = 0.005
SECRET = "tick-" + "e" * 40


def make_settings(dsn: str, lease: float, **values: Any) -> Settings:
    """Return settings with a *lease* shorter than a person may set, so that a test need not wait for it."""
    all_values: dict[str, Any] = {"database_url": dsn, "cron_secret": SECRET, "max_crashes": 100, **values}
    made = Settings(**all_values)
    return made.model_copy(update={"lease_seconds": lease})


def be_quiet() -> None:
    """Log nothing from here on: thousands of lines would be the costliest part of these tests."""
    structlog.configure(processors=[_drop], logger_factory=structlog.ReturnLoggerFactory())


def _drop(_logger: Any, _method: str, _event: Any) -> Any:
    raise structlog.DropEvent


def make_services(settings: Settings) -> Services:
    """Return the services of one process, with the kinds of these tests."""
    return Services(settings, Database(settings.dsn), asyncio.Event(), load_kinds(settings) | HANDLERS)


def tick_on(asked: dict[str, Any]) -> int:
    """Tick again and again until killed, or orphaned."""
    asyncio.run(_tick_on(_services(asked), os.getppid()))
    return 0


async def _tick_on(services: Services, parent: int) -> None:
    while os.getppid() == parent:
        await tick.run(services, Budget.from_settings(services.settings), "child")
        await asyncio.sleep(PAUSE_SECONDS)


def tick_once(asked: dict[str, Any]) -> int:
    """Run one tick that hears SIGTERM as `dormouse tick` does."""
    asyncio.run(_tick_once(_services(asked)))
    return 0


async def _tick_once(services: Services) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, services.stopping.set)
    await tick.run(services, Budget.from_settings(services.settings), "child")
    await services.database.close()


def serve(asked: dict[str, Any]) -> int:
    """Be `dormouse serve` on a port of loopback, settings from the environment."""
    return serving.serve("127.0.0.1", asked["port"])


def _services(asked: dict[str, Any]) -> Services:
    be_quiet()
    return make_services(make_settings(asked["dsn"], asked["lease"], **asked.get("settings", {})))


ROLES: dict[str, Callable[[dict[str, Any]], int]] = {"tick on": tick_on, "tick once": tick_once, "serve": serve}
