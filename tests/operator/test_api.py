"""The operator's desk over HTTP: look, explain, requeue, cancel, one or many; what does not fit is a problem."""

from typing import Any

import httpx
import pytest

from tests.operator.rows import add_job, add_tick

JOBS = "/api/admin/jobs"


async def test_a_list_is_filtered_and_paged(desk: httpx.AsyncClient, conn: Any) -> None:
    ids = [await add_job(conn, "mail.sent", "dead", last_error="SMTP 550") for _ in range(3)]
    await add_job(conn, "mail.sent")

    query = {"status": "dead", "kind": "mail.sent", "error": "smtp", "since": "2026-01-01T00:00:00Z", "limit": "2"}
    first = (await desk.get(JOBS, params=query)).json()
    second = (await desk.get(JOBS, params=query | {"before_id": first["next"]})).json()

    assert [job["id"] for job in first["jobs"]] == ids[:0:-1]
    assert ([job["id"] for job in second["jobs"]], second["next"]) == (ids[:1], None)


async def test_one_job_is_shown_whole_and_explained(desk: httpx.AsyncClient, conn: Any) -> None:
    await add_tick(conn)
    job_id = await add_job(conn, "nobody.knows", payload='{"n": 1}')

    job = (await desk.get(f"{JOBS}/{job_id}")).json()
    why = (await desk.get(f"{JOBS}/{job_id}/why")).json()

    assert (job["payload"], job["status"]) == ({"n": 1}, "ready")
    assert (why["id"], why["status"]) == (job_id, "ready")
    assert [rule["rule"] for rule in why["rules"] if rule["is_blocking"]] == ["kind"]
    assert why["rules"][-1]["rule"] == "what to do"


async def test_one_job_is_requeued_or_cancelled_in_its_state_alone(desk: httpx.AsyncClient, conn: Any) -> None:
    dead, ready = await add_job(conn, status="dead"), await add_job(conn)

    answers = [
        await desk.post(f"{JOBS}/{dead}/requeue"),
        await desk.post(f"{JOBS}/{dead}/requeue"),
        await desk.post(f"{JOBS}/{ready}/cancel"),
        await desk.post(f"{JOBS}/{ready}/cancel"),
        await desk.post(f"{JOBS}/999/cancel"),
    ]

    assert [answer.status_code for answer in answers] == [200, 409, 200, 409, 404]
    assert answers[0].json() == {"id": dead, "result": "requeued"}
    assert answers[1].headers["content-type"] == "application/problem+json"
    rows = await conn.fetch("SELECT status FROM jobs ORDER BY id")
    assert [row["status"] for row in rows] == ["ready", "cancelled"]


@pytest.mark.parametrize(
    ("verb", "status", "result"), [("requeue", "dead", "requeued"), ("cancel", "ready", "cancelled")]
)
async def test_many_are_changed_after_a_dry_run_that_changes_none(
    desk: httpx.AsyncClient, conn: Any, verb: str, status: str, result: str
) -> None:
    ids = [await add_job(conn, "mail.sent", status) for _ in range(3)]
    body = {"filter": {"kind": "mail.sent"}, "limit": 2}

    dry = (await desk.post(f"{JOBS}/{verb}", json=body | {"dry_run": True})).json()
    unchanged = await conn.fetchval("SELECT count(*) FROM jobs WHERE status = $1", status)
    first = (await desk.post(f"{JOBS}/{verb}", json=body | {"dry_run": False})).json()
    rest = (await desk.post(f"{JOBS}/{verb}", json=body | {"dry_run": False, "before_id": first["next"]})).json()

    assert (dry["count"], dry["ids"], dry["dry_run"], unchanged) == (2, ids[:0:-1], True, 3)
    assert (first["result"], first["ids"], rest["ids"], rest["next"]) == (result, ids[:0:-1], ids[:1], None)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"dry_run": True},
        {"filter": {}, "dry_run": True},
        {"filter": {"kind": "k"}},
        {"filter": {"kind": "k"}, "all": True, "dry_run": True},
        {"filter": {"status": "done"}, "dry_run": True},
        {"filter": {"since": "yesterday"}, "dry_run": True},
        {"all": True, "dry_run": "no"},
        {"all": True, "dry_run": True, "limit": 1001},
    ],
)
async def test_a_bulk_step_that_does_not_say_what_it_means_is_refused(
    desk: httpx.AsyncClient, conn: Any, body: dict[str, Any]
) -> None:
    await add_job(conn, status="dead")

    answer = await desk.post(f"{JOBS}/requeue", json=body)

    assert answer.status_code == 422
    assert await conn.fetchval("SELECT count(*) FROM jobs WHERE status = 'dead'") == 1


async def test_all_is_taken_where_it_is_said(desk: httpx.AsyncClient, conn: Any) -> None:
    await add_job(conn, status="dead")

    answer = await desk.post(f"{JOBS}/requeue", json={"all": True, "dry_run": False})

    assert answer.json()["count"] == 1


async def test_a_booking_whose_id_holds_a_slash_is_explained(desk: httpx.AsyncClient, conn: Any) -> None:
    await conn.execute("INSERT INTO bookings (id, starts_at) VALUES ('shop/7', now() + interval '1 hour')")

    answer = await desk.get("/api/admin/bookings/shop/7/why")
    missing = await desk.get("/api/admin/bookings/shop/8/why")

    assert (answer.status_code, answer.json()["id"], missing.status_code) == (200, "shop/7", 404)


async def test_a_suspended_channel_is_listed_and_resumed_once(desk: httpx.AsyncClient, conn: Any) -> None:
    await conn.execute(
        "INSERT INTO channels (name, suspended_until, reason) VALUES ('email', now() + interval '1 h', 'login refused')"
    )

    listed = (await desk.get("/api/admin/channels")).json()["channels"]
    answers = [await desk.post("/api/admin/channels/email/resume") for _ in range(2)]

    assert [(channel["name"], channel["reason"]) for channel in listed] == [("email", "login refused")]
    assert [answer.status_code for answer in answers] == [200, 404]
    assert await conn.fetchval("SELECT suspended_until FROM channels") is None


@pytest.mark.parametrize(
    "query",
    ["status=lost", "limit=0", "limit=101", "limit=1000000000", "before_id=0", "before_id=9223372036854775808",
     "since=2026-01-01", "error=", "kind=" + "k" * 600],
)  # fmt: skip
async def test_a_question_that_does_not_fit_gets_422(desk: httpx.AsyncClient, query: str) -> None:
    answer = await desk.get(f"{JOBS}?{query}")

    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")


@pytest.mark.parametrize("path", ["0", "9223372036854775808", "x", "1.5", "-1"])
async def test_an_id_that_is_none_gets_422(desk: httpx.AsyncClient, path: str) -> None:
    answer = await desk.get(f"{JOBS}/{path}")

    assert answer.status_code == 422
