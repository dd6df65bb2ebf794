"""A visitor of the pages: over ASGI for what can be read, in Chromium for what must be seen (browsing.py)."""

import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.config import Settings
from app.main import create_app
from tests.admin import browsing
from tests.admin.browsing import browser, go

__all__ = ["browser", "go"]

ADMIN_TOKEN = browsing.ADMIN_TOKEN
SAME = {"Sec-Fetch-Site": "same-origin"}
ORIGIN = "https://dormouse.example"
FORM_TOKEN = re.compile(r'name="form_token" value="([0-9a-f]{64})"')


class Visitor:
    """A browser without a window: keeps cookies, follows nothing by itself."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.client.get(path, headers=headers)

    async def post(self, path: str, **fields: str) -> httpx.Response:
        """Send a form as a page of ours would, without its token unless *fields* hold one."""
        return await self.client.post(path, data=fields, headers=SAME)

    async def log_in(self, token: str = ADMIN_TOKEN) -> httpx.Response:
        return await self.post("/admin/login", token=token, next="/admin")

    async def form_token(self) -> str:
        """Read the session's form token from a page."""
        found = FORM_TOKEN.search((await self.get("/admin/channels")).text)
        assert found is not None
        return found[1]

    async def send(self, path: str, **fields: str) -> httpx.Response:
        """Send a form with its token."""
        return await self.post(path, form_token=await self.form_token(), **fields)


@pytest.fixture
async def application(settings: Callable[..., Settings], dsn: str) -> AsyncIterator[FastAPI]:
    """The application with the pages on."""
    app = create_app(settings(admin_token=ADMIN_TOKEN, api_token="api-" + "t" * 40))
    yield app
    await app.state.services.database.close()


@pytest.fixture
async def stranger(application: FastAPI) -> AsyncIterator[Visitor]:
    """Somebody who is not logged in."""
    async with _client(application) as client:
        yield Visitor(client)


@pytest.fixture
async def visitor(application: FastAPI) -> AsyncIterator[Visitor]:
    """Somebody who is."""
    async with _client(application) as client:
        found = Visitor(client)
        assert (await found.log_in()).status_code == 303
        yield found


def _client(app: FastAPI, **more: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN, timeout=30, **more)


@pytest.fixture
def no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a wrong token be answered at once."""
    monkeypatch.setattr("app.web.admin.login.WRONG_SECONDS", 0.0)
