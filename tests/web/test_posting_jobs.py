"""POST /api/jobs: one job or a batch, durable when answered, repeatable under a dedupe_key."""

import json
from typing import Any

import httpx
import pytest

from tests.web.conftest import API

JOBS = "/api/jobs"


async def test_a_job_is_a_row_when_the_answer_comes(client: httpx.AsyncClient, conn: Any) -> None:
    body = {
        "kind": "mail.welcome",
        "payload": {"user": 7},
        "queue": "slow",
        "priority": 1,
        "max_attempts": 3,
        "run_at": "2030-03-29T09:30:00+02:00",
        "expires_at": "2030-03-30T09:30:00Z",
    }

    answer = await client.post(JOBS, headers=API, json=body)

    row = await conn.fetchrow("SELECT * FROM jobs")
    assert (answer.status_code, answer.json()) == (201, {"id": row["id"], "is_new": True})
    assert (row["kind"], json.loads(row["payload"]), row["queue"]) == ("mail.welcome", {"user": 7}, "slow")
    assert (row["priority"], row["max_attempts"], row["status"]) == (1, 3, "ready")
    assert (row["run_at"].isoformat(), row["expires_at"].isoformat()) == (
        "2030-03-29T07:30:00+00:00",
        "2030-03-30T09:30:00+00:00",
    )


async def test_the_same_key_again_is_the_same_row(client: httpx.AsyncClient, conn: Any) -> None:
    body = {"kind": "order.paid", "dedupe_key": "order-1"}

    first, second = [await client.post(JOBS, headers=API, json=body) for _ in range(2)]

    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json() == {"id": first.json()["id"], "is_new": False}
    assert await conn.fetchval("SELECT count(*) FROM jobs") == 1


async def test_a_batch_is_answered_in_the_order_sent(client: httpx.AsyncClient, conn: Any) -> None:
    keys = ["a", "b", "a", None, "c", None]
    await client.post(JOBS, headers=API, json={"kind": "k", "dedupe_key": "c"})

    answer = await client.post(JOBS, headers=API, json={"jobs": [{"kind": "k", "dedupe_key": key} for key in keys]})

    results = answer.json()["jobs"]
    assert answer.status_code == 201
    assert [result["is_new"] for result in results] == [True, True, False, True, False, True]
    assert results[0]["id"] == results[2]["id"]
    assert [await conn.fetchval("SELECT dedupe_key FROM jobs WHERE id = $1", one["id"]) for one in results] == keys


async def test_a_batch_of_a_thousand_is_taken_and_one_more_is_not(client: httpx.AsyncClient, conn: Any) -> None:
    jobs = [{"kind": "k", "dedupe_key": str(number)} for number in range(1001)]

    refused = await client.post(JOBS, headers=API, json={"jobs": jobs})
    taken = await client.post(JOBS, headers=API, json={"jobs": jobs[:1000]})

    assert (refused.status_code, taken.status_code) == (422, 201)
    assert await conn.fetchval("SELECT count(*) FROM jobs") == 1000


async def test_one_bad_job_keeps_the_whole_batch_out_and_is_named(client: httpx.AsyncClient, conn: Any) -> None:
    answer = await client.post(JOBS, headers=API, json={"jobs": [{"kind": "k"}, {"kind": ""}]})

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"].endswith("jobs.1.kind")
    assert await conn.fetchval("SELECT count(*) FROM jobs") == 0


async def test_a_delay_counts_from_the_clock_of_the_database(client: httpx.AsyncClient, conn: Any) -> None:
    jobs = [{"kind": "k", "delay_seconds": 90}, {"kind": "k"}]

    await client.post(JOBS, headers=API, json={"jobs": jobs})

    rows = await conn.fetch("SELECT extract(epoch FROM run_at - created_at)::int AS wait FROM jobs ORDER BY id")
    assert [row["wait"] for row in rows] == [90, 0]


@pytest.mark.parametrize(
    "run_at",
    ["2026-03-29T02:30:00", "2026-03-29", 1700000000, 1700000000000, "1700000000", 1.5, "", "now", "tomorrow",
     "2026-02-30T00:00:00Z", "2026-03-29T25:00:00Z", "2026-03-29T00:00:60Z", "2026-03-29T00:00:00+99:99", True, {},
     "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-01:00", "294277-01-01T00:00:00Z",
     "-4713-01-01T00:00:00Z", "infinity", "2026-W13-7T00:00:00Z", "\uff12\uff10\uff12\uff16-03-29T02:30:00Z"],
)  # fmt: skip
async def test_a_time_that_is_not_one_moment_gets_422(client: httpx.AsyncClient, conn: Any, run_at: Any) -> None:
    answer = await client.post(JOBS, headers=API, json={"kind": "k", "run_at": run_at})

    assert answer.status_code == 422
    assert await conn.fetchval("SELECT count(*) FROM jobs") == 0


@pytest.mark.parametrize(
    "run_at",
    ["2026-03-29T02:30:00Z", "2026-03-29t02:30z", "2026-03-29 02:30:00.123456789+0530", "9999-12-31T23:59:59Z"],
)
async def test_a_time_with_an_offset_is_taken(client: httpx.AsyncClient, run_at: str) -> None:
    answer = await client.post(JOBS, headers=API, json={"kind": "k", "run_at": run_at})

    assert answer.status_code == 201


@pytest.mark.parametrize(
    "change",
    [{"kind": ""}, {"kind": "k" * 201}, {"kind": None}, {"kind": 1}, {"payload": []}, {"payload": "x"},
     {"payload": None}, {"priority": 2}, {"priority": "1"}, {"priority": True}, {"max_attempts": 0},
     {"max_attempts": 2**31}, {"queue": ""}, {"queue": "q" * 201}, {"dedupe_key": ""}, {"dedupe_key": "d" * 501},
     {"delay_seconds": -1}, {"delay_seconds": 1e12}, {"delay_seconds": "1"}, {"unknown": 1},
     {"run_at": "2030-01-01T00:00:00Z", "delay_seconds": 1}, {"jobs": []}, {"jobs": [{"kind": "k"}]}],
)  # fmt: skip
async def test_a_job_that_does_not_fit_gets_422(client: httpx.AsyncClient, change: dict[str, Any]) -> None:
    answer = await client.post(JOBS, headers=API, json={"kind": "k"} | change)

    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")


@pytest.mark.parametrize("kind", ["k", "Ünïcode \U0001f600", "a\nb", "'; DROP TABLE jobs; --", "%s {}", "\u202e"])
async def test_any_text_may_name_a_kind(client: httpx.AsyncClient, conn: Any, kind: str) -> None:
    answer = await client.post(JOBS, headers=API, json={"kind": kind, "payload": {kind: kind}})

    assert answer.status_code == 201
    assert await conn.fetchval("SELECT kind FROM jobs") == kind


async def test_a_form_gets_415_and_what_to_send(client: httpx.AsyncClient) -> None:
    headers = API | {"Content-Type": "application/x-www-form-urlencoded"}

    answer = await client.post(JOBS, headers=headers, content=b'{"kind": "k"}')

    assert answer.status_code == 415
    assert "Content-Type: application/json" in answer.json()["detail"]
