"""The application with an operator's token, on the test's database."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from app.config import Settings
from app.main import create_app

ADMIN_TOKEN = "admin-" + "0123456789abcdef" * 3
OPERATOR = {"Authorization": f"Bearer {ADMIN_TOKEN}"}


@pytest.fixture
async def desk(settings: Callable[..., Settings], dsn: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client that holds the operator's token."""
    app: Any = create_app(settings(admin_token=ADMIN_TOKEN))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=OPERATOR, timeout=30) as opened:
        yield opened
    await app.state.services.database.close()
