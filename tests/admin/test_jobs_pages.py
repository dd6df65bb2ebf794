"""The pages of jobs: found by filter, paged by key, changed one by one or all that fit, and never by a GET."""

import html
import json
from typing import Any

import pytest

from tests.admin import world
from tests.admin.conftest import Visitor

FILL = """
    INSERT INTO jobs (kind, queue, status, finished_at, last_error)
    SELECT $1, 'default', $2, CASE WHEN $2 = 'ready' THEN NULL ELSE now() END, $4
    FROM generate_series(1, $3::int)
"""

ODD = "INSERT INTO jobs (kind, payload, errors) VALUES ('a.b', $1::text::jsonb, $2::text::jsonb)"


async def add(conn: Any, kind: str, status: str, number: int = 1, error: str | None = None) -> None:
    await conn.execute(FILL, kind, status, number, error)


async def test_an_empty_list_says_so(visitor: Visitor) -> None:
    assert "No job fits" in (await visitor.get("/admin/jobs")).text


async def test_the_filter_leads_to_an_address_of_names(visitor: Visitor, conn: Any) -> None:
    await world.add_jobs(conn, world.JOBS)

    led = await visitor.send("/admin/jobs", status="dead", kind="avatar.resize", queue="", error="")
    page = (await visitor.get(led.headers["location"])).text

    assert led.headers["location"] == "/admin/jobs?status=dead&kind=avatar.resize"
    assert page.count('<tr><th scope="row">') == 1
    assert "crashed" in page


async def test_the_text_of_an_error_never_stands_in_an_address(visitor: Visitor, conn: Any) -> None:
    await add(conn, "mail.send", "dead", 60, "TimeoutError: canary took no mail")
    await add(conn, "mail.send", "dead", 1, "another")

    answer = await visitor.send("/admin/jobs", status="", kind="", queue="", error="CANARY")
    before = html.unescape(answer.text).partition('name="before" value="')[2].partition('"')[0]
    second = await visitor.send("/admin/jobs", status="", kind="", queue="", error="CANARY", before=before)
    ignored = await visitor.get("/admin/jobs?error=CANARY")

    assert [page.text.count('<tr><th scope="row">') for page in (answer, second, ignored)] == [50, 10, 50]
    assert not [link for link in answer.text.split('href="')[1:] if "canary" in link.partition('"')[0].lower()]


async def test_a_list_is_paged_by_id_and_no_job_is_shown_twice(visitor: Visitor, conn: Any) -> None:
    await add(conn, "a.b", "ready", 120)

    seen, path = [], "/admin/jobs?status=ready"
    while path:
        page = html.unescape((await visitor.get(path)).text)
        seen += [piece.partition('"')[0] for piece in page.split('href="/admin/jobs/')[1:]]
        path = next((link for link in page.split('href="')[1:] if "before=" in link.partition('"')[0]), "").partition(
            '"'
        )[0]

    assert seen == [str(number) for number in range(120, 0, -1)]


async def test_an_address_that_names_nothing_is_refused(visitor: Visitor) -> None:
    befores = ("x", "0", "-1", str(2**63), "9" * 400, "\N{ARABIC-INDIC DIGIT ONE}", "1e3")

    answers = [await visitor.get(f"/admin/jobs?before={before}") for before in befores]
    answers += [await visitor.get(f"/admin/jobs?{query}") for query in ("status=broken", "kind=" + "k" * 201)]

    assert [answer.status_code for answer in answers] == [422] * 9


async def test_a_value_that_comes_twice_is_refused(visitor: Visitor) -> None:
    assert (await visitor.get("/admin/jobs?kind=a&kind=b")).status_code == 400


async def test_a_job_that_is_not_there_is_no_error_of_ours_and_a_page(visitor: Visitor) -> None:
    for job_id in ("0", "1", "x", "-1", str(2**63), "9" * 400, "1e3", "\N{ARABIC-INDIC DIGIT ONE}"):
        answer = await visitor.get(f"/admin/jobs/{job_id}")

        assert answer.status_code in (404, 422), job_id
        assert "</html>" in answer.text


async def test_a_job_is_shown_with_attempts_payload_and_what_to_do(visitor: Visitor, conn: Any) -> None:
    await world.add_jobs(conn, world.JOBS)

    page = html.unescape((await visitor.get("/admin/jobs/3")).text)

    assert "ConnectionRefusedError: the accounting service took no connection" in page
    assert "TimeoutError: it ran longer than 10 s" in page
    assert '"invoice": "R-2026-0815"' in page
    assert "What to do" in page
    assert 'action="/admin/jobs/3/requeue"' in page


async def test_what_another_program_wrote_is_shown_as_it_is(visitor: Visitor, conn: Any) -> None:
    errors = ["[]", '["plain text"]', '[{"at": null}]', '[{"attempt": [1], "at": 5, "error": {}}]', "[null, 7]"]
    payloads: list[Any] = [{}, {"a": "x" * 10_000}, {"deep": [[[[[]]]]]}, {"n": 2**53}, {"ไทย": "\u202e🐭"}]
    for error, payload in zip(errors, payloads, strict=True):
        await conn.execute(ODD, json.dumps(payload), error)

    answers = [await visitor.get(f"/admin/jobs/{number}") for number in range(1, 6)]

    assert [answer.status_code for answer in answers] == [200] * 5


async def test_a_dead_job_is_requeued_and_a_ready_one_is_not(visitor: Visitor, conn: Any) -> None:
    await add(conn, "a.b", "dead")

    led = await visitor.send("/admin/jobs/1/requeue")
    again = await visitor.send("/admin/jobs/1/requeue")

    assert led.headers["location"] == "/admin/jobs/1?done=requeue"
    assert "Requeued" in (await visitor.get(led.headers["location"])).text
    assert await conn.fetchval("SELECT status FROM jobs") == "ready"
    assert again.status_code == 409


async def test_a_ready_job_is_cancelled_and_a_dead_one_is_not(visitor: Visitor, conn: Any) -> None:
    await add(conn, "a.b", "ready")

    led = await visitor.send("/admin/jobs/1/cancel")

    assert led.headers["location"] == "/admin/jobs/1?done=cancel"
    assert await conn.fetchval("SELECT status FROM jobs") == "cancelled"
    assert (await visitor.send("/admin/jobs/1/cancel")).status_code == 409


@pytest.mark.parametrize(("verb", "status", "other"), [("requeue", "dead", "ready"), ("cancel", "ready", "cancelled")])
async def test_many_are_counted_first_and_changed_when_the_person_is_sure(
    visitor: Visitor, conn: Any, verb: str, status: str, other: str
) -> None:
    await add(conn, "a.b", status, 12)
    await add(conn, "c.d", status, 3)

    asked = await visitor.send(f"/admin/bulk/{verb}", kind="a.b", status=status)
    untouched = await conn.fetchval("SELECT count(*) FROM jobs WHERE status = $1", status)
    led = await visitor.send(f"/admin/bulk/{verb}", kind="a.b", status=status, sure="yes")

    assert "12 " in asked.text.partition('id="ask"')[2][:100]
    assert asked.text.count('<tr><th scope="row">') == 10
    assert untouched == 15
    assert led.headers["location"] == f"/admin/jobs?status={status}&done={verb}&n=12&kind=a.b"
    assert "12 jobs" in (await visitor.get(led.headers["location"])).text
    assert await conn.fetchval("SELECT count(*) FROM jobs WHERE status = $1", other) == 12


async def test_more_than_one_step_takes_are_done_step_by_step(visitor: Visitor, conn: Any) -> None:
    await add(conn, "a.b", "dead", 1500)

    first = await visitor.send("/admin/bulk/requeue", status="dead", sure="yes")
    before = first.text.partition('name="before" value="')[2].partition('"')[0]
    second = await visitor.send("/admin/bulk/requeue", status="dead", sure="yes", before=before)

    assert "1,000 jobs requeued." in first.text
    assert "500 dead jobs would be requeued." in first.text
    assert second.status_code == 303
    assert await conn.fetchval("SELECT count(*) FROM jobs WHERE status = 'ready'") == 1500


async def test_there_is_no_third_way_to_change_many(visitor: Visitor) -> None:
    assert (await visitor.send("/admin/bulk/delete")).status_code == 404


async def test_many_of_another_status_are_refused(visitor: Visitor) -> None:
    assert (await visitor.send("/admin/bulk/requeue", status="done", sure="yes")).status_code == 422
