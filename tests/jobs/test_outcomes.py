"""How a run ends: by returning, or by what it raises; each way moves the row as the picture says."""

import functools
from dataclasses import dataclass

import pytest

from app.jobs import Job, Kind, Permanent, RetryAfter, Snooze, Steps, enqueue
from app.jobs.runner import LEASE_LOST, STOPPED, TIMED_OUT, Ending, judge
from tests.jobs.rows import make_due, put, row_of, statuses, tick_once
from tests.jobs.runs import claimed_row, kind_of


@dataclass
class Avatar:
    user_id: int


def raising(error: BaseException) -> Kind:
    async def handler(_job: Job) -> None:
        raise error

    return Kind(handler)


async def test_a_handler_that_returns_is_done(conn, services):
    (job_id,) = await put(conn)

    summary = await tick_once(services({"toy": kind_of()}))

    row = await row_of(conn, job_id)
    assert (row["status"], row["attempts"], row["locked_until"], row["errors"]) == ("done", 1, None, [])
    assert row["finished_at"] is not None
    assert summary["jobs"]["done"] == 1


async def test_snooze_comes_back_after_its_delay_and_spends_no_attempt(conn, services):
    (job_id,) = await put(conn)
    made = services({"toy": raising(Snooze(90))})

    for _ in range(3):
        summary = await tick_once(made)
        snoozed = await row_of(conn, job_id)
        await make_due(conn)

    assert (snoozed["status"], snoozed["attempts"], snoozed["errors"]) == ("ready", 0, [])
    assert 80 < snoozed["wait"] <= 90
    assert summary["jobs"]["snoozed"] == 1


async def test_retry_after_waits_what_the_far_side_asked_and_counts_as_a_failure(conn, services):
    (job_id,) = await put(conn)

    summary = await tick_once(services({"toy": raising(RetryAfter(7200, "come back later"))}))

    row = await row_of(conn, job_id)
    assert (row["status"], row["attempts"], row["last_error"]) == ("ready", 1, "RetryAfter: come back later")
    assert 7190 < row["wait"] <= 7200
    assert summary["jobs"]["retried"] == 1


async def test_retry_after_does_not_outlive_the_last_attempt(conn, services):
    (job_id,) = await put(conn, max_attempts=1)

    await tick_once(services({"toy": raising(RetryAfter(1))}))

    assert (await row_of(conn, job_id))["status"] == "dead"


async def test_permanent_is_dead_at_once_with_its_reason(conn, services):
    (job_id,) = await put(conn)

    summary = await tick_once(services({"toy": raising(Permanent("no such user"))}))

    row = await row_of(conn, job_id)
    assert (row["status"], row["attempts"], row["last_error"]) == ("dead", 1, "no such user")
    assert summary["jobs"]["dead"] == 1
    assert summary["attention"] == ["jobs_dead"]


async def test_any_other_error_is_tried_again_later(conn, services):
    (job_id,) = await put(conn)

    await tick_once(services({"toy": raising(ZeroDivisionError("x"))}))

    row = await row_of(conn, job_id)
    assert (row["status"], row["attempts"], row["last_error"]) == ("ready", 1, "ZeroDivisionError: x")
    assert 14 < row["wait"] <= 30


async def test_a_dead_job_is_not_touched_by_later_ticks(conn, services):
    (job_id,) = await put(conn, max_attempts=2)
    made = services({"toy": raising(RuntimeError("always"))})

    for _ in range(20):
        await tick_once(made)
        await make_due(conn)

    row = await row_of(conn, job_id)
    assert (row["status"], row["attempts"], len(row["errors"])) == ("dead", 2, 2)


async def test_two_failures_and_then_a_success_is_one_done_job(conn, services):
    delivered = []

    async def provider(job: Job) -> None:
        if job.attempts < 3:
            raise RuntimeError("503")
        delivered.append(job.id)

    (job_id,) = await put(conn)
    made = services({"toy": Kind(provider)})

    for _ in range(5):
        await tick_once(made)
        await make_due(conn)

    assert delivered == [job_id]
    assert (await row_of(conn, job_id))["attempts"] == 3


@pytest.mark.parametrize("delay", [-1, float("nan"), float("inf"), "5", None, [1]])
@pytest.mark.parametrize("way", [Snooze, RetryAfter])
def test_an_impossible_delay_is_an_ordinary_failure(way, delay):
    verdict = judge(claimed_row(), kind_of(), Ending(way(delay)))

    assert verdict is not None
    assert verdict.outcome == "retried"
    assert 15 <= verdict.delay <= 30


@pytest.mark.parametrize("delay", [1e30, 10**400, 1e308])
@pytest.mark.parametrize("way", [Snooze, RetryAfter])
async def test_a_delay_beyond_the_calendar_is_a_year_and_a_day(conn, services, way, delay):
    (job_id,) = await put(conn)

    summary = await tick_once(services({"toy": raising(way(delay))}))

    assert summary["errors"] == []
    assert (await row_of(conn, job_id))["wait"] == pytest.approx(366 * 86_400, abs=60)


async def test_a_payload_is_handed_over_as_the_kinds_own_class(conn, services):
    seen = []

    async def handler(job: Job) -> None:
        seen.append(job.payload)

    await enqueue(conn, "typed", Avatar(7))
    await enqueue(conn, "plain", {"user_id": 7})

    await tick_once(services({"typed": Kind(handler, payload=Avatar), "plain": Kind(handler)}))

    assert Avatar(7) in seen
    assert {"user_id": 7} in seen


@pytest.mark.parametrize("payload", ['{"user_id": "ada@example.com"}', "{}", '{"user_id": 1.5}'])
async def test_a_payload_that_does_not_validate_is_permanent_and_names_no_value(conn, services, payload):
    job_id = await conn.fetchval("INSERT INTO jobs (kind, payload) VALUES ('toy', $1) RETURNING id", payload)

    summary = await tick_once(services({"toy": Kind(kind_of().handler, payload=Avatar)}))

    row = await row_of(conn, job_id)
    assert (row["status"], row["attempts"]) == ("dead", 1)
    assert row["last_error"].startswith("the payload does not validate: user_id (")
    assert "ada" not in row["last_error"]
    assert summary["jobs"]["dead"] == 1


async def test_a_payload_too_deep_to_read_hurts_only_itself(conn, services):
    deep = '{"x":' * 3000 + "1" + "}" * 3000
    huge = '{"x": 1' + "0" * 5000 + "}"
    for payload in (deep, huge):
        await conn.execute("INSERT INTO jobs (kind, payload) VALUES ('toy', $1)", payload)
    await put(conn, 5)

    summary = await tick_once(services({"toy": kind_of()}))

    assert summary["jobs"]["claimed"] == 7
    assert summary["errors"] == []
    assert (await statuses(conn))["done"] >= 5
    assert "running" not in await statuses(conn)


async def test_handlers_may_be_methods_partials_and_objects(conn, services):
    ran = []

    class Shop:
        async def method(self, _job: Job) -> None:
            ran.append("method")

        async def __call__(self, _job: Job) -> None:
            ran.append("object")

    async def named(name: str, job: Job) -> None:
        ran.append(name)

    kinds = {
        "method": Kind(Shop().method),
        "object": Kind(Shop()),
        "partial": Kind(functools.partial(named, "partial")),
        "lambda": Kind(lambda job: named("lambda", job)),
    }
    for kind in kinds:
        await enqueue(conn, kind)

    await tick_once(services(kinds))

    assert sorted(ran) == sorted(kinds)
    assert await statuses(conn) == {"done": 4}


def test_what_would_run_nothing_is_no_handler():
    def generator(job):
        yield job

    async def stream(job):
        yield job

    for handler in (generator, stream, None, "shop.jobs.resize"):
        with pytest.raises(TypeError, match="handler"):
            kind_of(handler)


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan")])
def test_a_timeout_is_a_time(timeout):
    with pytest.raises(ValueError, match="timeout"):
        kind_of(timeout=timeout)


def test_a_lost_lease_writes_nothing_whatever_the_handler_did():
    for error in (None, RuntimeError(), Snooze(1), Permanent("x")):
        assert judge(claimed_row(), kind_of(), Ending(error, LEASE_LOST)) is None


def test_a_job_that_ended_well_while_it_was_cut_is_done():
    for cut in (STOPPED, TIMED_OUT):
        verdict = judge(claimed_row(), kind_of(), Ending(None, cut))
        assert verdict is not None
        assert verdict.outcome == "done"


def test_crashes_spend_no_attempt():
    kind = kind_of(retry=Steps(60, 600))

    verdict = judge(claimed_row(attempts=3, crashes=2), kind, Ending(RuntimeError()))

    assert verdict is not None
    assert verdict.outcome == "retried"
    assert 60 <= verdict.delay <= 66
