"""One tick, and what it sent."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import asyncpg

from app import tick
from app.config import Settings
from app.db import Connection
from app.jobs.services import Services
from app.tick import Budget
from tests.servers import Server

APP = str(Path(tick.__file__).parent)


async def tick_once(
    services: Services,
    *,
    seconds: float | None = None,
    jobs: int | None = None,
    reminders: int | None = None,
    is_dry_run: bool = False,
    source: str = "test",
) -> dict[str, Any]:
    """Run one tick and return its summary as the caller of the endpoint reads it."""
    settings = services.settings
    budget = Budget(
        settings.tick_jobs if jobs is None else jobs,
        settings.tick_reminders if reminders is None else reminders,
        settings.tick_budget_seconds if seconds is None else seconds,
        is_dry_run,
    )
    summary = await tick.run(services, budget, source)
    answer: dict[str, Any] = json.loads(json.dumps(summary.as_dict(), allow_nan=False))
    return answer


def still_running() -> list[str]:
    """Name the tasks of the product that are not done: after an answer there is none."""
    coroutines = [task.get_coro() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    files = [(coroutine, getattr(coroutine, "cr_code", None)) for coroutine in coroutines]
    return [str(coroutine) for coroutine, code in files if code is not None and APP in code.co_filename]


async def until_quiet(seconds: float = 2.0) -> None:
    """Wait until what was cancelled has ended; fail when something goes on."""
    async with asyncio.timeout(seconds):
        while still_running():  # noqa: ASYNC110 - the end of a task of the product's sets no event of ours
            await asyncio.sleep(0.01)


CUT = """
    SELECT pg_terminate_backend(pid, 5000)
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


@asynccontextmanager
async def beside_any_pooler(server: Server, dsn: str) -> AsyncIterator[Connection]:
    """Lend a connection of the test's own that no pooler shares with the product, to run `CUT` on."""
    name = dsn.rpartition("/")[2].partition("?")[0]
    connection = await asyncpg.connect(server.direct(name))
    yield connection
    await connection.close()


def outbox(settings: Settings) -> list[EmailMessage]:
    """Return the messages in the outbox."""
    found = sorted(Path(settings.outbox_dir).glob("*.eml"))
    return [message_from_bytes(path.read_bytes(), policy=policy.default) for path in found]


def recipients(settings: Settings) -> list[str]:
    """Return to whom the outbox' messages go."""
    return sorted(str(message["To"]) for message in outbox(settings))
