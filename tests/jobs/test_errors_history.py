"""Each failed attempt leaves an entry, numbered and in words; the list is bounded, and writing it cannot fail."""

from typing import Any

import pytest

from app.jobs import Job, Kind, Permanent
from app.jobs.operate import requeue
from app.jobs.queue import ERRORS_KEPT
from tests.jobs.rows import make_due, put, row_of, tick_once


class Mute(Exception):
    def __str__(self) -> str:
        raise SystemExit


def careless(reason: Any) -> Permanent:
    """Give a reason that is no text, as a handler may."""
    return Permanent(reason)


NASTY = [
    RuntimeError("a\x00b"),
    RuntimeError("\ud800 lone"),
    RuntimeError("m" * 1_048_576),
    RuntimeError("postgresql://app:hunter2@db.example.com/shop"),
    RuntimeError("nobody@example.com is unknown"),
    Mute(),
    Permanent("a\x00b nobody@example.com hunter2@example.com"),
    careless(None),
    careless(RuntimeError("wrapped")),
    careless(Mute()),
    Permanent(""),
]


async def test_recording_a_failure_never_fails(conn, services):
    async def fail(job: Job) -> None:
        raise NASTY[job.payload["n"] - 1]

    ids = await put(conn, len(NASTY))

    summary = await tick_once(services({"toy": Kind(fail)}))

    assert summary["errors"] == []
    assert summary["jobs"]["retried"] == 6
    assert summary["jobs"]["dead"] == len(NASTY) - 6
    for job_id in ids:
        row = await row_of(conn, job_id)
        assert 0 < len(row["last_error"]) <= 500
        assert row["errors"][-1]["error"] == row["last_error"]
        assert "hunter2" not in row["last_error"]
        assert "nobody" not in row["last_error"]


async def test_the_attempts_are_numbered_and_the_last_error_is_the_last(conn, services):
    async def fail(job: Job) -> None:
        raise RuntimeError(f"number {job.attempts}")

    made = services({"toy": Kind(fail)})
    (job_id,) = await put(conn, max_attempts=3)

    for _ in range(3):
        await tick_once(made)
        await make_due(conn)

    row = await row_of(conn, job_id)
    assert row["status"] == "dead"
    assert [(entry["attempt"], entry["error"]) for entry in row["errors"]] == [
        (n, f"RuntimeError: number {n}") for n in (1, 2, 3)
    ]
    assert row["last_error"] == "RuntimeError: number 3"
    assert all(entry["at"] for entry in row["errors"])


async def test_the_history_keeps_the_newest_and_no_more(conn, services):
    async def fail(job: Job) -> None:
        raise RuntimeError(f"number {job.attempts}")

    made = services({"toy": Kind(fail)})
    (job_id,) = await put(conn, max_attempts=1000)

    for _ in range(ERRORS_KEPT + 5):
        await tick_once(made)
        await make_due(conn)

    entries = (await row_of(conn, job_id))["errors"]
    assert [entry["attempt"] for entry in entries] == list(range(6, ERRORS_KEPT + 6))


async def test_a_success_after_failures_keeps_their_history(conn, services):
    async def fail_once(job: Job) -> None:
        if job.attempts == 1:
            raise RuntimeError("once")

    made = services({"toy": Kind(fail_once)})
    (job_id,) = await put(conn)

    await tick_once(made)
    await make_due(conn)
    await tick_once(made)

    row = await row_of(conn, job_id)
    assert (row["status"], row["attempts"], len(row["errors"])) == ("done", 2, 1)


async def test_requeue_keeps_the_history(conn, services):
    async def fail(job: Job) -> None:
        raise Permanent("never")

    made = services({"toy": Kind(fail)})
    (job_id,) = await put(conn)

    await tick_once(made)
    await requeue(conn, job_id)
    await tick_once(made)

    assert [entry["attempt"] for entry in (await row_of(conn, job_id))["errors"]] == [1, 1]


@pytest.mark.parametrize("name", ["cron_secret", "admin_token", "api_token"])
async def test_no_setting_that_is_secret_is_stored_with_an_error(conn, services, name):
    secret = "q7" * 20

    async def fail(job: Job) -> None:
        raise RuntimeError(f"the far side said {secret}!")

    made = services({"toy": Kind(fail)}, **{name: secret})
    (job_id,) = await put(conn)

    await tick_once(made)

    assert (await row_of(conn, job_id))["last_error"] == "RuntimeError: the far side said [secret]!"
