"""A sink on loopback that apprise's own `json://` speaks to, and ticks that tell it."""

import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from app import tick
from app.jobs import Job, Kind, Permanent
from app.tick import Budget
from tests.channels.http_server import HttpServer, answer, http_server

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # apprise imports imghdr
    import apprise

    apprise.Apprise("json://127.0.0.1")  # loads every plugin, here once: no thread of a test meets the warning

OK = answer(200)
Tick = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing stand between apprise and loopback."""
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture
async def sink() -> AsyncIterator[HttpServer]:
    async with http_server(OK) as server:
        yield server


def address(server: HttpServer) -> str:
    return f"json://127.0.0.1:{server.port}/hook"


def told(server: HttpServer) -> list[str]:
    """Return the texts that the sink was sent, each with its title before it."""
    return [f"{request.json['title']}\n{request.json['message']}" for request in server.requests]


async def die(_job: Job) -> None:
    raise Permanent("no such customer: person@example.com")


async def live(_job: Job) -> None:
    return


@pytest.fixture
def run_tick(services: Any, sink: HttpServer) -> Tick:
    """Run one tick whose alerts go to the sink: `await run_tick(alert_urls=..., seconds=5)`."""

    async def run(seconds: float | None = None, **settings: Any) -> dict[str, Any]:
        values: dict[str, Any] = {"alert_urls": address(sink), "public_url": "https://jobs.example.com"} | settings
        made = services({"note.taken": Kind(die), "note.read": Kind(live)}, **values)
        budget = Budget.from_settings(made.settings)
        return (await tick.run(made, Budget(budget.jobs, budget.reminders, seconds or budget.seconds))).as_dict()

    return run
