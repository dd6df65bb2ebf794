"""Whatever one job raises, it ends that job and no other."""

import asyncio

import pytest

from app.jobs import Job, Kind
from tests.jobs.rows import put, row_of, statuses, tick_once


class Odd(BaseException):
    """Nobody's Exception."""


ERRORS: list[type[BaseException]] = [
    Exception,
    BaseException,
    Odd,
    SystemExit,
    KeyboardInterrupt,
    GeneratorExit,
    StopIteration,
    StopAsyncIteration,
    asyncio.CancelledError,
    TimeoutError,
    MemoryError,
    RecursionError,
]


async def test_no_exception_of_any_sort_takes_its_neighbours_along(conn, services):
    async def toy(job: Job) -> None:
        await asyncio.sleep(0)
        number = job.payload["n"] - 1
        if number < len(ERRORS):
            raise ERRORS[number]

    ids = await put(conn, len(ERRORS) + 20)

    summary = await tick_once(services({"toy": Kind(toy)}))

    assert summary["jobs"]["done"] == 20
    assert summary["jobs"]["retried"] == len(ERRORS)
    assert summary["errors"] == []
    assert await statuses(conn) == {"done": 20, "ready": len(ERRORS)}
    for job_id in ids[: len(ERRORS)]:
        row = await row_of(conn, job_id)
        assert (row["attempts"], len(row["errors"])) == (1, 1)


async def test_nor_does_one_that_is_raised_in_a_thread(conn, services):
    def toy(job: Job) -> None:
        number = job.payload["n"] - 1
        if number < len(ERRORS):
            raise ERRORS[number]

    await put(conn, len(ERRORS) + 20)

    summary = await tick_once(services({"toy": Kind(toy)}))

    assert summary["jobs"]["done"] == 20
    assert summary["jobs"]["retried"] == len(ERRORS)
    assert summary["errors"] == []


async def test_a_group_of_errors_is_one_failure(conn, services):
    async def toy(job: Job) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(30))
            raise RuntimeError

    (job_id,) = await put(conn)

    await tick_once(services({"toy": Kind(toy)}))

    assert (await row_of(conn, job_id))["last_error"].startswith("ExceptionGroup: ")


async def test_a_handler_that_cancels_its_own_task_has_failed(conn, services):
    async def toy(job: Job) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(30)

    job_id, _ = await put(conn, 2)

    summary = await tick_once(services({"toy": Kind(toy)}))

    assert summary["jobs"]["retried"] == 2
    assert (await row_of(conn, job_id))["last_error"] == "CancelledError"


@pytest.mark.parametrize("policy", ["raises", "NaN"])
async def test_a_broken_retry_policy_hurts_only_its_own_job(conn, services, policy):
    class Broken:
        def delay(self, _failures: int) -> float:
            if policy == "raises":
                raise OverflowError
            return float("nan")

    async def fail(job: Job) -> None:
        raise RuntimeError

    await put(conn, kind="broken")
    await put(conn, 5)

    summary = await tick_once(
        services({"broken": Kind(fail, retry=Broken()), "toy": Kind(lambda _job: None)}), seconds=12
    )

    assert (summary["jobs"]["retried"], summary["jobs"]["done"]) == (1, 5)
    assert summary["stopped_by"] == "empty"
