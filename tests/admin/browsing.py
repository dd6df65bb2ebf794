"""Debian's Chromium, driven by Playwright: one browser a run, a fresh profile for each visit.

CI=true without a Chromium is an error; elsewhere the tests that need one are skipped.
"""

import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, async_playwright

from tests.web.serving import Serving, serve

ADMIN_TOKEN = "admin-" + "a" * 40
CRON_SECRET = "tick-" + "c" * 40
ARTIFACTS = Path(__file__).resolve().parent.parent.parent / "artifacts" / "admin"
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# Whatever the policy refuses is noted where the test can read it, before the page's own first line.
WATCH = "window.refused = []; addEventListener('securitypolicyviolation', e => refused.push(e.violatedDirective))"
MODES: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1200, "height": 800}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1200, "height": 800}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}, "color_scheme": "light", "has_touch": True},
    "thai": {"viewport": {"width": 1200, "height": 800}, "color_scheme": "light", "locale": "th-TH"},
}


def find_chromium() -> str:
    """Return Chromium's path; skip the test where there is none, unless this is CI."""
    path = shutil.which("chromium")
    if path is None and os.environ.get("CI") == "true":
        raise RuntimeError("CI needs a Chromium: apt-get install chromium")
    if path is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    return path


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    """The run's browser."""
    path, home = find_chromium(), tmp_path_factory.mktemp("chromium")
    environment: dict[str, str | float | bool] = {"HOME": str(home), "PATH": os.environ.get("PATH", "")}
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS), env=environment)
        yield opened
        await opened.close()


@dataclass
class Seen:
    """What a page did that no page of ours may do."""

    dialogs: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@dataclass
class Visit:
    """A person before the pages of one server."""

    page: Page
    url: str
    seen: Seen

    async def open(self, path: str) -> int:
        """Go to *path* and return its status."""
        answer = await self.page.goto(self.url + path)
        assert answer is not None
        return answer.status

    async def log_in(self, token: str = ADMIN_TOKEN, onward: str = "/admin") -> None:
        """Come by the front door."""
        await self.open(onward)
        await self.page.get_by_label("Token").or_(self.page.get_by_label("โทเค็น")).fill(token)
        await self.page.locator("button.main").click()
        await self.page.wait_for_load_state()

    async def refused(self) -> list[str]:
        """Return what the policy refused on this page."""
        found: list[str] = await self.page.evaluate("window.refused")
        return found

    async def is_too_wide(self) -> bool:
        """Say whether the page scrolls sideways."""
        wide: bool = await self.page.evaluate("document.documentElement.scrollWidth > innerWidth")
        return wide


Go = Callable[..., Any]


@pytest.fixture
def go(dsn: str, tmp_path: Path, browser: Browser) -> Iterator[Go]:
    """Start a server and visit it: `async with go(mode="phone", QUEUES="default") as visit`."""
    with ExitStack() as stack:
        started: list[Serving] = []

        @asynccontextmanager
        async def visit(mode: str = "light", *, has_scripts: bool = True, **environment: str) -> AsyncIterator[Visit]:
            if not started:
                values = {
                    "DATABASE_URL": dsn,
                    "CRON_SECRET": CRON_SECRET,
                    "ADMIN_TOKEN": ADMIN_TOKEN,
                    "OUTBOX_DIR": str(tmp_path / "outbox"),
                }
                started.append(stack.enter_context(serve(tmp_path, values | environment)))
            context = await browser.new_context(**MODES[mode], java_script_enabled=has_scripts)
            try:
                yield await _visit(context, started[0].url)
            finally:
                await context.close()

        yield visit


async def _visit(context: BrowserContext, url: str) -> Visit:
    await context.add_init_script(WATCH)
    page, seen = await context.new_page(), Seen()

    async def note_dialog(dialog: Any) -> None:
        seen.dialogs.append(dialog.message)
        await dialog.dismiss()

    def note_line(line: Any) -> None:
        if line.type in ("error", "warning") and "Failed to load resource" not in line.text:
            seen.complaints.append(line.text)

    page.on("dialog", note_dialog)
    page.on("console", note_line)
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    return Visit(page, url, seen)
