"""A tick leaves one line in the log: what it did, in counts, and nothing of what it did it to."""

from structlog.testing import capture_logs

from app.jobs import Job, Kind, Permanent
from tests.jobs.rows import put, tick_once


async def test_a_good_tick_is_one_line_of_counts(conn, services):
    async def toy(job: Job) -> None:
        """Be done."""

    await put(conn, 3)

    with capture_logs() as lines:
        summary = await tick_once(services({"toy": Kind(toy)}))

    [line] = [line for line in lines if line["event"] == "tick.finished"]
    assert line["log_level"] == "info"
    assert line["counts"] == {"ticks": 1, "jobs.claimed": 3, "jobs.done": 3}
    assert line["tick_id"] == summary["tick_id"]
    assert line["stopped_by"] == summary["stopped_by"]
    assert (line["attention"], line["failed"]) == ([], [])


async def test_a_tick_that_needs_a_person_is_an_error(conn, services):
    async def toy(job: Job) -> None:
        raise Permanent("no")

    await put(conn)

    with capture_logs() as lines:
        await tick_once(services({"toy": Kind(toy)}))

    [line] = [line for line in lines if line["event"] == "tick.finished"]
    assert (line["log_level"], line["attention"]) == ("error", ["jobs_dead"])


async def test_an_empty_tick_is_a_line_too(conn, services):
    with capture_logs() as lines:
        await tick_once(services({}))

    assert [(line["event"], line["counts"]) for line in lines] == [("tick.finished", {"ticks": 1})]
