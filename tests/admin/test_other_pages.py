"""Overview, reminders, bookings, ticks, schedule and channels: what they say, empty and full."""

import html
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from app.config import Settings
from app.main import create_app
from tests.admin import world
from tests.admin.conftest import ADMIN_TOKEN, ORIGIN, Visitor

PAGES = (
    "/admin",
    "/admin/pulse",
    "/admin/jobs",
    "/admin/reminders",
    "/admin/reminders/uncertain",
    "/admin/reminders/failed",
    "/admin/reminders/sent",
    "/admin/reminders/skipped",
    "/admin/ticks",
    "/admin/schedule",
    "/admin/channels",
)
BOOK = ("b-1", "Haircut", "3 hours", "confirmed", "Mali", "mali@example.org", "Asia/Bangkok", "th", "", "f")
MANY = """
    INSERT INTO bookings (id, title, starts_at)
    SELECT 'b-' || n, 'Haircut', now() + interval '1 day' + n / 3 * interval '1 minute'
    FROM generate_series(100, 100 + $1::int - 1) AS n
"""
MANY_SENT = """
    INSERT INTO reminders (booking_id, starts_at, remind_before, channel, status, sent_at)
    SELECT id, starts_at, interval '24 hours', 'email', 'sent', now() FROM bookings
"""


def words(answer: httpx.Response) -> str:
    return html.unescape(answer.text)


async def test_every_page_stands_with_nothing_to_show_and_with_much(visitor: Visitor, conn: Any) -> None:
    empty = [await visitor.get(path) for path in PAGES]
    await world.fill(conn)
    full = [await visitor.get(path, **{"Accept-Language": language}) for path in PAGES for language in ("en", "th")]

    assert {page.status_code for page in empty + full} == {200}
    assert sum('<html lang="th">' in page.text for page in full) == len(PAGES) - 1


async def test_the_overview_of_a_new_service_says_what_to_do(visitor: Visitor) -> None:
    page = words(await visitor.get("/admin"))

    assert "No tick has come yet" in page
    assert "POST /api/cron/tick" in page


async def test_the_overview_says_when_all_is_well(visitor: Visitor, conn: Any) -> None:
    await world.add_ticks(conn)

    assert "All is well" in words(await visitor.get("/admin"))


async def test_the_overview_names_what_needs_a_person_and_leads_there(visitor: Visitor, conn: Any) -> None:
    await world.fill(conn)

    page = words(await visitor.get("/admin"))

    for text in (
        "5 dead jobs", "No build here knows the kind old.kind", "1 reminder may have been sent", "1 reminder failed",
        "1 booking started unreminded", "The channel email is suspended", "The oldest due job has waited for 2 h",
    ):  # fmt: skip
        assert text in page
    assert 'href="/admin/reminders/uncertain"' in page


async def test_the_overview_tells_of_a_scheduler_that_fell_silent(visitor: Visitor, conn: Any) -> None:
    await world.add_ticks(conn)
    await conn.execute("DELETE FROM ticks WHERE started_at > now() - interval '5 hours'")

    assert "is the scheduler running?" in words(await visitor.get("/admin"))
    assert "still open" in words(await visitor.get("/admin/schedule"))


async def test_a_booking_to_come_shows_what_it_will_get(visitor: Visitor, conn: Any) -> None:
    await world.fill(conn)

    page = words(await visitor.get("/admin/reminders"))

    assert "48 h before" in page
    assert "goes out at the next tick" in page
    assert "planned in 28 h" in page
    assert "Tasting" not in page


@pytest.mark.parametrize("lead", ["/admin/reminders", "/admin/reminders/sent"])
async def test_bookings_and_records_are_paged_by_key(visitor: Visitor, conn: Any, lead: str) -> None:
    await conn.execute(MANY, 120)
    await conn.execute(MANY_SENT)

    seen: list[str] = []
    path = lead
    while path:
        page = words(await visitor.get(path))
        seen += [piece.partition('"')[0] for piece in page.split('href="/admin/bookings/')[1:]]
        links = [piece.partition('"')[0] for piece in page.split('href="')[1:]]
        path = next((link for link in links if "before=" in link or "after=" in link), "")

    assert len(seen) == len(set(seen)) == 120


async def test_a_place_that_is_none_is_refused(visitor: Visitor) -> None:
    for text in ("x", "[]", "[1,2]", "[" * 400, '["2026-01-01","b"]', '["x","b"]', "null", "[NaN]"):
        later, older = (
            await visitor.get(f"/admin/reminders?after={text}"),
            await visitor.get(f"/admin/reminders/sent?before={text}"),
        )

        assert (later.status_code, older.status_code) == (422, 422), text


async def test_an_uncertain_reminder_is_sent_again_when_a_person_says_so(visitor: Visitor, conn: Any) -> None:
    await world.add_bookings(conn, [BOOK])
    await world.add_reminder(conn, "b-1", "uncertain", "dead", "the answer was lost")
    listed = words(await visitor.get("/admin/reminders/uncertain"))

    await visitor.send("/admin/jobs/1/requeue")

    assert "Send it again" in listed
    assert "It did arrive: take it for sent" in listed
    assert await conn.fetchval("SELECT status FROM jobs") == "ready"


async def test_an_uncertain_reminder_that_came_is_taken_for_sent_and_its_job_goes_round(
    visitor: Visitor, conn: Any
) -> None:
    await world.add_bookings(conn, [BOOK])
    await world.add_reminder(conn, "b-1", "uncertain", "dead", "the answer was lost")

    led = await visitor.send("/admin/jobs/1/accept")

    assert "Taken for sent" in words(await visitor.get(led.headers["location"]))
    assert await conn.fetchval("SELECT status FROM reminders") == "sent"
    assert await conn.fetchval("SELECT status FROM jobs") == "ready"
    assert (await visitor.send("/admin/jobs/1/accept")).status_code == 409


@pytest.mark.parametrize(("status", "job"), [("failed", "dead"), ("sent", "done")])
async def test_only_an_uncertain_reminder_can_be_taken_for_sent(
    visitor: Visitor, conn: Any, status: str, job: str
) -> None:
    await world.add_bookings(conn, [BOOK])
    await world.add_reminder(conn, "b-1", status, job, "invalid_recipient")

    assert (await visitor.send("/admin/jobs/1/accept")).status_code == 409
    assert await conn.fetchval("SELECT status FROM jobs") == job


async def test_a_booking_is_found_under_any_id(visitor: Visitor, conn: Any) -> None:
    names = ["a/b c", "ไทย", "100%", "a?b#c", "<b>", "a+b", "..a"]
    await world.add_bookings(conn, [(name, *BOOK[1:]) for name in names])
    page = (await visitor.get("/admin/reminders")).text

    links = [html.unescape(piece.partition('"')[0]) for piece in page.split('href="/admin/bookings/')[1:]]
    answers = [await visitor.get(f"/admin/bookings/{link}") for link in links]

    assert [answer.status_code for answer in answers] == [200] * len(names)
    assert all(name in "".join(words(answer) for answer in answers) for name in names)


async def test_a_booking_shows_why(visitor: Visitor, conn: Any) -> None:
    await world.fill(conn)

    page = words(await visitor.get("/admin/bookings/b-2"))

    assert "48 h, 2 h before the start, by its own remind_before" in page


async def test_what_is_not_there_is_a_404_and_a_page(visitor: Visitor) -> None:
    for path in ("bookings/none", "ticks/none", f"ticks/{'0' * 32}", "reminders/planned", "x/y"):
        answer = await visitor.get(f"/admin/{path}")

        assert (answer.status_code, 'href="/admin"' in answer.text) == (404, True), path


async def test_a_slash_too_many_leads_to_the_overview(visitor: Visitor) -> None:
    assert (await visitor.get("/admin/")).headers["location"] == "/admin"


async def test_a_tick_is_shown_whatever_an_older_build_left_out(visitor: Visitor, conn: Any) -> None:
    await conn.execute(
        "INSERT INTO ticks (id, started_at, finished_at, source, summary)"
        " SELECT gen_random_uuid(), now(), now(), 'old', summary::jsonb"
        " FROM unnest($1::text[]) AS summary",
        ["{}", '{"jobs": {}}', '{"jobs": {"done": 3}, "errors": [{}]}', '{"reminders": {"sent": 1}}'],
    )

    pages = [await visitor.get(path) for path in ("/admin", "/admin/ticks", "/admin/schedule")]
    links = [piece.partition('"')[0] for piece in pages[1].text.split('href="/admin/ticks/')[1:]]
    ticks = [await visitor.get(f"/admin/ticks/{link}") for link in links]

    assert [page.status_code for page in [*pages, *ticks]] == [200] * 7


async def test_a_suspended_channel_is_resumed_once(visitor: Visitor, conn: Any) -> None:
    await conn.execute(world.SUSPEND)

    led = await visitor.send("/admin/channels/resume", name="email")

    assert "Resumed" in words(await visitor.get(led.headers["location"]))
    assert await conn.fetchval("SELECT suspended_until FROM channels") is None
    assert (await visitor.send("/admin/channels/resume", name="email")).status_code == 409


async def test_the_language_is_kept_and_leads_back(visitor: Visitor) -> None:
    led = await visitor.post("/admin/language", language="th", back="/admin/jobs")

    assert led.headers["location"] == "/admin/jobs"
    assert '<html lang="th">' in (await visitor.get("/admin/jobs")).text
    assert (await visitor.post("/admin/language", language="xx", back="/admin")).status_code == 422


async def test_a_database_that_is_away_is_a_503_and_a_page(settings: Callable[..., Settings]) -> None:
    values = {"database_url": "postgresql://nobody@127.0.0.1:1/none", "connect_timeout_seconds": 0.01}
    app = create_app(settings(admin_token=ADMIN_TOKEN, **values))

    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url=ORIGIN, cookies={"__Host-dormouse": "x" * 43}
    ) as client:
        answer = await client.get("/admin")
        door = await client.get("/admin/login", headers={"Cookie": ""})

    assert (answer.status_code, door.status_code) == (503, 200)
    assert int(answer.headers["retry-after"]) > 0
    assert "</html>" in answer.text


def test_no_page_is_imported_before_it_is_asked_for() -> None:
    code = "import sys, app.main; print([name for name in sys.modules if name.startswith('app.web.admin.')])"

    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert found.stdout.strip() == "[]"
