"""The pages in a real browser: the whole way of one dead job, the door, strangers' words, readers of screens, looks.

Screenshots of every page, light, dark, on a phone and in Thai, are left in artifacts/admin.
"""

import re
from typing import Any

import asyncpg
import httpx
import pytest
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]  # it ships no types
from playwright.async_api import expect

from tests.admin import hostile, world
from tests.admin.browsing import ADMIN_TOKEN, ARTIFACTS, CRON_SECRET, MODES, Go, Visit
from tests.web.conftest import bearer

pytestmark = pytest.mark.asyncio(loop_scope="session")

LINKS = "links => links.map(link => link.getAttribute('href'))"
AXE: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}
# What the window's width or the colours can change is looked at again; the rest is the same in every mode.
CHANGES = ["color-contrast", "scrollable-region-focusable", "target-size"]
RULES = {"light": {}, "dark": {"runOnly": CHANGES}, "phone": {"runOnly": CHANGES}}
DEAD: list[tuple[str, ...]] = [
    (
        "invoice.send",
        "default",
        '{"invoice": "R-1"}',
        "dead",
        "8",
        "-1 hour",
        "TimeoutError: no answer",
        "0",
        "invoice:1",
    )
]


async def put(dsn: str, *statements: str, hostile_words: bool = False) -> None:
    """Run *statements* on the test's database, from the loop that the browser runs in."""
    connection = await asyncpg.connect(dsn)
    for statement in statements:
        await connection.execute(statement, *([list(hostile.CORPUS)] if hostile_words else []))
    await connection.close()


async def fill(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await world.fill(connection)
    await connection.close()


async def pages_of(visit: Visit) -> dict[str, str]:
    """Return the address of every sort of page, by a name for its screenshot."""
    pages = {
        name.rpartition("/")[2]: name
        for name in ("/admin/jobs", "/admin/ticks", "/admin/schedule", "/admin/channels", "/admin/nothing")
    }
    pages |= {f"reminders-{name}": f"/admin/reminders/{name}" for name in ("uncertain", "failed", "sent", "skipped")}
    pages |= {"overview": "/admin", "reminders": "/admin/reminders", "jobs-none": "/admin/jobs?kind=none"}
    for path, name, number in (("/admin/jobs?status=dead", "job-dead", 3), ("/admin/jobs?status=ready", "job-ready", 1),
                               ("/admin/reminders", "booking", 1), ("/admin/ticks", "tick", 1)):  # fmt: skip
        await visit.open(path)
        found = await visit.page.eval_on_selector_all("tbody th a", LINKS)
        pages |= {f"{name}-{place}": link for place, link in enumerate(found[:number])}
    return pages


async def test_a_dead_job_is_seen_understood_requeued_and_done(dsn: str, go: Go) -> None:
    connection = await asyncpg.connect(dsn)
    await world.add_jobs(connection, DEAD)
    await connection.close()

    async with go(HANDLER_MODULES="tests.admin.shop") as visit:
        await visit.log_in()
        await visit.page.get_by_role("link", name="1 dead job").click()
        await visit.page.get_by_role("link", name="invoice.send").click()
        await expect(visit.page.get_by_text("all 8 attempts have failed; the last one: TimeoutError")).to_be_visible()
        await visit.page.get_by_role("button", name="Requeue").click()
        await expect(visit.page.get_by_role("status")).to_contain_text("Requeued")
        async with httpx.AsyncClient() as scheduler:
            summary = (await scheduler.post(f"{visit.url}/api/cron/tick", headers=bearer(CRON_SECRET))).json()
        await visit.page.reload()

        await expect(visit.page.locator("h1 + .badge")).to_have_text("done")
        assert summary["jobs"]["done"] == 1
        assert (visit.seen.dialogs, visit.seen.complaints) == ([], [])
        await visit.page.get_by_role("link", name="Overview").click()
        await expect(visit.page.get_by_role("heading", level=1)).to_have_text("All is well")


async def test_all_of_it_works_without_scripts(dsn: str, go: Go) -> None:
    connection = await asyncpg.connect(dsn)
    await world.add_jobs(connection, [*DEAD, *world.JOBS])
    await connection.close()

    async with go(has_scripts=False) as visit:
        await visit.log_in()
        await visit.page.get_by_role("link", name="Jobs", exact=True).click()
        await visit.page.get_by_label("Status").select_option("dead")
        await visit.page.get_by_label("Text of the error").fill("no answer")
        await visit.page.get_by_role("button", name="Show").click()
        await visit.page.get_by_role("button", name="Requeue all of these").click()
        await expect(visit.page.get_by_role("heading", level=2)).to_have_text("1 dead job would be requeued.")
        await visit.page.get_by_role("button", name="Requeue 1 job").click()
        await expect(visit.page.get_by_role("status")).to_have_text("1 job requeued.")
        await visit.page.get_by_role("button", name="ไทย").click()
        await visit.page.get_by_role("button", name="ออกจากระบบ").click()

        await expect(visit.page.get_by_role("heading", level=1)).to_have_text("เข้าสู่ระบบ")


async def test_a_wrong_token_an_expired_session_and_the_way_back(dsn: str, go: Go) -> None:
    async with go() as visit:
        await visit.log_in("wrong-" + "x" * 40, onward="/admin/schedule")
        await expect(visit.page.get_by_role("alert")).to_contain_text("not the token")
        await visit.page.get_by_label("Token").fill(ADMIN_TOKEN)
        await visit.page.get_by_role("button", name="Log in").click()
        await expect(visit.page).to_have_url(f"{visit.url}/admin/schedule")
        await put(dsn, "UPDATE admin_sessions SET last_seen_at = now() - interval '31 minutes'")
        await visit.page.get_by_role("link", name="Ticks").click()

        await expect(visit.page.get_by_role("heading", level=1)).to_have_text("Log in")
        [cookie] = await visit.page.context.cookies()
        assert (cookie["name"], cookie["httpOnly"], cookie["secure"], cookie["sameSite"]) == (
            "__Host-dormouse", True, True, "Strict",
        )  # fmt: skip


async def test_a_link_from_another_site_finds_the_session(go: Go) -> None:
    async with go() as visit:
        await visit.log_in()
        elsewhere = visit.url.replace("127.0.0.1", "localhost")
        await visit.page.goto(f"{elsewhere}/livez")
        await visit.page.evaluate("address => { location.href = address }", f"{visit.url}/admin/channels")

        await expect(visit.page.get_by_role("heading", level=1)).to_have_text("Channels")


async def test_strangers_words_stay_words(dsn: str, go: Go) -> None:
    await put(dsn, *hostile.PLANTS, hostile_words=True)
    await put(dsn, hostile.PLANT_REMINDERS)

    async with go() as visit:
        await visit.log_in()
        for path in [*(await links_of(visit)), "/admin", "/admin/schedule", "/admin/channels"]:
            assert await visit.open(path) < 500, path
            assert await visit.refused() == [], path
            assert await visit.page.locator("main iframe, main script, main base, main style, main math").count() == 0
        await visit.open("/admin/jobs?status=dead")
        await visit.page.get_by_label("Text of the error").fill(hostile.CORPUS[0])
        await visit.page.get_by_role("button", name="Show").click()
        await expect(visit.page.get_by_text(hostile.CORPUS[0]).first).to_be_visible()
        await visit.page.get_by_role("button", name="Requeue all of these").click()

        assert await visit.refused() == []
        assert (visit.seen.dialogs, visit.seen.complaints) == ([], [])


async def links_of(visit: Visit) -> list[str]:
    """Return every page that the lists lead to, and the lists."""
    lists = ["/admin/jobs", "/admin/reminders", "/admin/ticks"]
    lists += [f"/admin/reminders/{name}" for name in ("failed", "uncertain", "skipped")]
    found = []
    for path in lists:
        await visit.open(path)
        found += await visit.page.eval_on_selector_all("tbody th a", LINKS)
    return list(dict.fromkeys(lists + found))


@pytest.mark.parametrize("mode", MODES)
async def test_every_page_fits_its_window_and_hinders_nobody(dsn: str, go: Go, mode: str) -> None:
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    async with go(mode) as visit:
        await visit.open("/admin/login")
        found = await look(visit, mode, "login")
        await visit.log_in()
        found += await look(visit, mode, "new")
        await fill(dsn)
        for name, path in (await pages_of(visit)).items():
            await visit.open(path)
            found += await look(visit, mode, name)
        await visit.open("/admin/jobs?status=dead")
        await visit.page.locator(".head form button").click()
        found += await look(visit, mode, "bulk")

        assert found == []
        assert (visit.seen.dialogs, visit.seen.complaints) == ([], [])


async def look(visit: Visit, mode: str, name: str) -> list[str]:
    """Keep a picture of the page and return what is wrong with it: too wide, or in somebody's way."""
    await visit.page.screenshot(path=ARTIFACTS / f"{name}-{mode}.png", full_page=True)
    wide = [f"{name} is too wide"] if await visit.is_too_wide() else []
    if mode not in RULES:
        return wide
    results = await Axe().run(visit.page, options=AXE | RULES[mode])
    return wide + [
        f"{name}: {problem['id']}: {problem['nodes'][0]['html'][:200]}"
        for problem in results.response["violations"]
        if problem["impact"] in ("serious", "critical")
    ]


async def test_a_keyboard_reaches_the_content_and_every_control_shows_its_focus(dsn: str, go: Go) -> None:
    await fill(dsn)
    async with go() as visit:
        await visit.log_in()
        await visit.open("/admin/jobs")
        await visit.page.keyboard.press("Tab")
        await expect(visit.page.locator(".skip")).to_be_focused()
        await visit.page.keyboard.press("Enter")
        await visit.page.keyboard.press("Tab")
        await expect(visit.page.get_by_label("Status")).to_be_focused()

        outline = await visit.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"


async def test_the_overview_looks_again_while_it_is_seen_and_never_while_it_is_hidden(dsn: str, go: Go) -> None:
    asked: list[str] = []
    async with go() as visit:
        await visit.page.clock.install()
        visit.page.on("request", lambda request: asked.append(re.sub(r".*/admin", "/admin", request.url)))
        await visit.log_in()
        connection = await asyncpg.connect(dsn)
        await world.add_jobs(connection, DEAD)
        await connection.close()
        asked.clear()
        await visit.page.clock.run_for(31_000)
        await expect(visit.page.get_by_role("link", name="1 dead job")).to_be_visible()
        await hide(visit.page)
        asked_while_seen = asked.copy()
        await visit.page.clock.run_for(3_600_000)
        asked_while_hidden = asked[len(asked_while_seen) :]

        assert [path for path in asked_while_seen if "/assets/" not in path] == ["/admin/pulse"]
        assert asked_while_hidden == []


async def test_the_overview_stops_looking_when_nobody_touches_it(go: Go) -> None:
    asked: list[str] = []
    async with go() as visit:
        await visit.page.clock.install()
        await visit.log_in()
        visit.page.on("request", lambda request: asked.append(request.url) if "/assets/" not in request.url else None)
        for _ in range(40):
            await visit.page.clock.run_for(30_000)
            await visit.page.wait_for_function("() => true")

        assert 1 <= len(asked) <= 20


async def hide(page: Any) -> None:
    """Make *page* say that nobody sees it."""
    await page.evaluate(
        "Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true });"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
