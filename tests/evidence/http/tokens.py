"""One token for each role, the header that carries it, and the application that knows them all."""

from typing import Any

from fastapi import FastAPI

from app.config import load_settings
from app.main import create_app

CRON_SECRET = "tick-" + "1c" * 20
CRON_SECRET_PREVIOUS = "past-" + "2p" * 20
API_TOKEN = "apis-" + "3a" * 20
ADMIN_TOKEN = "desk-" + "4d" * 20
SETTINGS: dict[str, Any] = {
    "cron_secret": CRON_SECRET,
    "cron_secret_previous": CRON_SECRET_PREVIOUS,
    "api_token": API_TOKEN,
    "admin_token": ADMIN_TOKEN,
}
ENVIRONMENT = {name.upper(): value for name, value in SETTINGS.items()}


def bearer(token: str) -> dict[str, str]:
    """Return the header that carries *token*."""
    return {"Authorization": f"Bearer {token}"}


def token_for(path: str) -> str:
    """Return the token that opens the API's address *path*, empty for one that is open or a page."""
    for prefix, token in (("/api/cron", CRON_SECRET), ("/api/admin", ADMIN_TOKEN), ("/metrics", ADMIN_TOKEN)):
        if path.startswith(prefix):
            return token
    return API_TOKEN if path.startswith("/api/") else ""


def application() -> FastAPI:
    """Return the application with all its routes, on a database that is never asked."""
    return create_app(load_settings(database_url="postgresql://nobody@127.0.0.1:1/none", openapi=True, **SETTINGS))
