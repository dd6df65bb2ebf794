"""A tick over the whole way: claimed, run, settled, counted."""

from app import tick
from app.jobs import Job, Kind, enqueue
from app.tick import Budget


async def test_ten_jobs_are_done_and_counted(services, conn):
    ran = []

    async def note(job: Job) -> None:
        ran.append(job.payload["n"])

    made = services({"note.taken": Kind(note)})
    for n in range(10):
        await enqueue(conn, "note.taken", {"n": n})

    summary = (await tick.run(made, Budget.from_settings(made.settings))).as_dict()

    assert sorted(ran) == list(range(10))
    assert summary["jobs"]["done"] == 10
    assert summary["ok"] is True


async def test_an_empty_tick_costs_three_round_trips(services):
    made = services()

    summary = (await tick.run(made, Budget.from_settings(made.settings))).as_dict()

    assert summary["round_trips"] <= 3
    assert summary["stopped_by"] == "empty"
