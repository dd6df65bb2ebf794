"""Producers and schedulers as the API sees them: the real application in this process, asked without a socket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from app.config import Settings
from app.main import create_app
from tests.evidence.kills.roles import SECRET, be_quiet

API_TOKEN = "api-" + "p" * 40


@dataclass(frozen=True)
class Client:
    """One application and a caller of it that has both tokens."""

    http: httpx.AsyncClient

    async def enqueue(self, key: str) -> httpx.Response:
        """POST a job under *key*."""
        return await self._send("POST", "/api/jobs", API_TOKEN, {"kind": "note.taken", "dedupe_key": key})

    async def enqueue_text(self, key: str, text: str) -> httpx.Response:
        """POST a job that holds *text*."""
        body = {"kind": "note.taken", "dedupe_key": key, "payload": {"text": text}}
        return await self._send("POST", "/api/jobs", API_TOKEN, body)

    async def book(self, booking_id: str) -> httpx.Response:
        """PUT a booking far ahead."""
        body = {"starts_at": "2090-01-01T10:00:00+00:00", "title": "Haircut"}
        return await self._send("PUT", f"/api/bookings/{booking_id}", API_TOKEN, body)

    async def list_bookings(self) -> httpx.Response:
        """GET a page of bookings."""
        return await self._send("GET", "/api/bookings", API_TOKEN)

    async def tick(self) -> httpx.Response:
        """POST a tick."""
        return await self._send("POST", "/api/cron/tick", SECRET)

    async def _send(self, method: str, path: str, token: str, body: Any = None) -> httpx.Response:
        return await self.http.request(method, path, json=body, headers={"Authorization": f"Bearer {token}"})


@asynccontextmanager
async def open_client(dsn: str, **values: Any) -> AsyncIterator[Client]:
    """Lend an application of its own, with a pool of its own, on the database at *dsn*."""
    all_values: dict[str, Any] = {"database_url": dsn, "cron_secret": SECRET, "api_token": API_TOKEN, **values}
    application = create_app(Settings(**all_values))
    be_quiet()
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://test", timeout=60) as http:
        try:
            yield Client(http)
        finally:
            await application.state.services.database.close()
