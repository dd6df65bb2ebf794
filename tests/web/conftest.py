"""The application on a real database, called in this process or served by uvicorn on a port of its own."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.config import Settings
from app.main import create_app
from tests.web.serving import Serving, serve

API_TOKEN = "api-" + "t" * 40
CRON_SECRET = "tick-" + "c" * 40


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


CRON = bearer(CRON_SECRET)
API = bearer(API_TOKEN)


@pytest.fixture
async def application(settings: Callable[..., Settings], dsn: str) -> AsyncIterator[FastAPI]:
    """The application on the test's database."""
    app = create_app(settings(cron_secret=CRON_SECRET, api_token=API_TOKEN))
    yield app
    await app.state.services.database.close()


@pytest.fixture
async def client(application: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A client without a token."""
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://test", timeout=30) as opened:
        yield opened


@pytest.fixture
def served(dsn: str, tmp_path: Any) -> Iterator[Callable[..., Serving]]:
    """Serve the application in a process of its own: `served(POOL_MAX="2")`."""
    with ExitStack() as stack:

        def start(**environment: str) -> Serving:
            values = {
                "DATABASE_URL": dsn,
                "CRON_SECRET": CRON_SECRET,
                "API_TOKEN": API_TOKEN,
                "OUTBOX_DIR": str(tmp_path / "outbox"),
            }
            return stack.enter_context(serve(tmp_path, values | environment))

        yield start
