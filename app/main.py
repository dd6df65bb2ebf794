"""The application: settings in, one FastAPI out, with the guard in front.

Nothing here asks the database: a sleeping one must not stop the start. What is wrong with the settings is
told before the first request instead.

SIGTERM and SIGINT reach the ticks under way through `services.stopping`, set the moment the signal comes:
uvicorn's own handler only closes the doors, and its lifespan ends after the requests have.
"""

import asyncio
import contextlib
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from types import FrameType

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from app.config import Settings, load_settings
from app.db import Database
from app.errors import ConfigError
from app.handlers import prepare
from app.jobs.services import Services
from app.log import setup_logging
from app.web import admin, bookings, cron, health, jobs, metrics, operator, status
from app.web.gates import make_gates, map_places
from app.web.guard import Guard
from app.web.problems import answer_problem

CLOSE_SECONDS = 1.0
SIGNALS = (signal.SIGTERM, signal.SIGINT)
ROUTERS = (
    cron.router,
    health.router,
    jobs.router,
    bookings.router,
    admin.router,
    status.router,
    operator.router,
    metrics.router,
)


class UnstartableError(ConfigError, SystemExit):
    """A ConfigError that, where nobody catches it, ends the process with its sentences, not a traceback."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(problems)
        self.code = f"Dormouse cannot start:\n{self}"


def create_app(settings: Settings | None = None) -> FastAPI:
    """Return the application that runs with *settings*, read from the environment when None.

    Raise ConfigError, with every problem that was found, before anything is opened.
    """
    try:
        return _create(settings or load_settings("DATABASE_URL", "CRON_SECRET"))
    except ConfigError as error:
        raise UnstartableError(error.problems) from None


def _create(settings: Settings) -> FastAPI:
    if settings.cron_secret is None:
        raise ConfigError(["CRON_SECRET is not set: make one with openssl rand -hex 32."])
    setup_logging(settings)
    services = _make_services(settings)
    app = FastAPI(
        title="Dormouse",
        openapi_url="/openapi.json" if settings.openapi else None,
        docs_url="/docs" if settings.openapi else None,
        swagger_ui_oauth2_redirect_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
        exception_handlers={HTTPException: answer_problem, RequestValidationError: answer_problem},
    )
    app.state.services = services
    app.state.readiness = health.Readiness(services.database)
    for router in ROUTERS:
        app.router.routes.extend(router.routes)
    places = map_places(app.routes, make_gates(settings))
    app.add_middleware(Guard, places=places, stopping=services.stopping)
    return app


def _make_services(settings: Settings) -> Services:
    database = Database(settings.dsn, pool_max=settings.pool_max, connect_timeout=settings.connect_timeout_seconds)
    return Services(settings, database, asyncio.Event(), prepare(settings))


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    services: Services = app.state.services
    try:
        with _hear_signals(services.stopping):
            yield
    finally:
        services.stopping.set()
        await services.database.close(CLOSE_SECONDS)


@contextlib.contextmanager
def _hear_signals(stopping: asyncio.Event) -> Iterator[None]:
    """Set *stopping* when the process is told to end, then do what was done before.

    A server that has no handler of its own in place keeps it that way: ours alone would swallow the signal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = {number: handler for number in SIGNALS if callable(handler := signal.getsignal(number))}

    def hear(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stopping.set)
        before[signal.Signals(number)](number, frame)

    for number in before:
        signal.signal(number, hear)
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is hear:
                signal.signal(number, handler)
