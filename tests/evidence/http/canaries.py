"""Words that exist nowhere else, one for each thing that must not be seen, and the places to look for them.

secrets       no log, no answer, no page, no table
payload       the row of its job, and the operator's view of that job
attendee      the booking, what was rendered for it, and the views of both
"""

import asyncio
import secrets
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from tests.evidence.http.real import ROOT, bare_environment

SECRET_NAMES = (
    "CRON_SECRET",
    "CRON_SECRET_PREVIOUS",
    "API_TOKEN",
    "ADMIN_TOKEN",
    "database password",
    "mail password",
    "heartbeat key",
    "alert password",
    "alert key",
)
ATTENDEE = ("name", "address", "line id", "title", "location")
COMMAND_SECONDS = 60


def word(of: str) -> str:
    """Return a word that no other text holds, a letter first and long enough for a token."""
    return f"canary-{of.replace(' ', '-').lower()}-{secrets.token_hex(12)}"


@dataclass(frozen=True)
class Canaries:
    """One word for each thing."""

    secrets: dict[str, str] = field(default_factory=lambda: {name: word(name) for name in SECRET_NAMES})
    attendee: dict[str, str] = field(default_factory=lambda: {name: word(name) for name in ATTENDEE})
    payload: str = field(default_factory=lambda: word("payload"))
    request: str = field(default_factory=lambda: word("request"))

    def settings(self, dsn: str, mail_port: int, far_port: int) -> dict[str, str]:
        """Return the environment that holds every secret where it belongs."""
        held, here = self.secrets, "127.0.0.1"
        return {
            "DATABASE_URL": with_password(dsn, held["database password"]),
            "CRON_SECRET": held["CRON_SECRET"],
            "CRON_SECRET_PREVIOUS": held["CRON_SECRET_PREVIOUS"],
            "API_TOKEN": held["API_TOKEN"],
            "ADMIN_TOKEN": held["ADMIN_TOKEN"],
            "EMAIL_URL": f"smtp://dormouse:{held['mail password']}@{here}:{mail_port}?tls=none",
            "HEARTBEAT_URL": f"http://{here}:{far_port}/{held['heartbeat key']}",
            "ALERT_URLS": f"json://dormouse:{held['alert password']}@{here}:{far_port}/{held['alert key']}",
        }

    def found_in(self, text: str, *, but: tuple[str, ...] = ()) -> list[str]:
        """Return the names of all words that *text* holds, those of *but* excepted."""
        words = self.secrets | self.attendee | {"payload": self.payload, "request": self.request}
        return [name for name, each in words.items() if each in text and name not in but]


def with_password(dsn: str, password: str) -> str:
    """Return *dsn* with *password* for its user; the server of the tests asks for none."""
    parts = urlsplit(dsn)
    return urlunsplit(parts._replace(netloc=parts.netloc.replace("postgres@", f"postgres:{password}@", 1)))


async def run_command(folder: Path, settings: dict[str, str], *arguments: str) -> str:
    """Run `dormouse` with *arguments* and return all that it said."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app.cli", *arguments),
        cwd=folder,
        env=bare_environment() | {"PYTHONPATH": str(ROOT)} | settings,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(COMMAND_SECONDS):
        said, _ = await process.communicate()
    return said.decode()


TABLES = """
    SELECT relname
    FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
    ORDER BY relname
"""


async def read_tables(conn: Any) -> dict[str, str]:
    """Return every table as text, all columns of all rows."""
    names = [row["relname"] for row in await conn.fetch(TABLES)]
    return {
        name: "\n".join([row[0] for row in await conn.fetch(f'SELECT t::text FROM "{name}" AS t')])  # noqa: S608 - names from the catalogue
        for name in names
    }
