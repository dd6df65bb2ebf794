"""The parts of `benchmarks/run.py` work for our own side: no peers, no network, small sizes."""

import asyncio
import tempfile
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.contenders import BARE, TICKS, WORKER, ours
from benchmarks.drain import Drain, drain
from benchmarks.server import running_server
from benchmarks.shelf import make_template, obey
from benchmarks.suite import as_plain

JOBS = 600


@pytest.fixture(scope="module")
def home():
    """A folder for our server; not below that of pytest, which a second pytest closes to the server's user."""
    with tempfile.TemporaryDirectory(prefix="dormouse-test-") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def bench_server(home):
    """The benchmarks' own server, as durable as it ships."""
    with running_server(home / "server") as server:
        yield server


@pytest.mark.parametrize("name", [WORKER, TICKS, BARE])
async def test_every_side_of_ours_drains_what_it_was_given_and_says_what_it_cost(name, home, bench_server):
    contender = next(found for found in ours(home) if found.name == name)
    template = await make_template(bench_server, contender, JOBS, history=200)
    await bench_server.create("run", template.name)

    found = await drain(bench_server, contender, "run", JOBS - 1, boundary=template.boundary)

    assert (found.jobs, found.is_capped) == (JOBS - 1, False)
    assert found.rate > 0
    assert found.wal_bytes > 0
    assert 0 < found.peak_mb < 80


async def test_enqueueing_is_timed_by_the_side_itself(home, bench_server):
    contender = ours(home)[0]
    await bench_server.create("run")
    obey(contender, "schema", bench_server.dsn("run"))

    seconds = await asyncio.to_thread(obey, contender, "bulk", bench_server.dsn("run"), JOBS)

    assert seconds > 0


def test_the_report_holds_a_row_for_everybody_and_the_ratios_of_each_round(home):
    contenders = ours(home)
    drains = {WORKER: [measured(30_000), measured(20_000)], BARE: [measured(40_000), measured(40_000)]}
    results = {"drain 1": drains, "drain 4": drains, "snapshot": drains}

    report.write_report(home / "results", results, contenders, ["How noisy it was."])

    text = Path(home / "results" / "speed.md").read_text(encoding="utf-8")
    assert "| dormouse worker | 25,000 (20,000..30,000) |" in text
    assert "| bare asyncpg | 0.62 x | 0.62 x |" in text
    assert "How noisy it was." in text
    assert {place.name for place in (home / "results").iterdir()} == {"speed.md", "speed.png", "speed.svg"}


def measured(rate: float) -> dict[str, float]:
    """Return what a drain at *rate* leaves in the results."""
    costs = {"start": 0.2, "wal": 800.0, "commits": 0.005, "peak": 50.0, "worker_cpu": 15.0, "server_cpu": 20.0}
    return {"rate": rate, "first": rate, "last": rate * 0.9, **costs}


def test_a_drain_tells_how_fast_its_windows_were():
    found = Drain(100, 3.0, marks=[(1, 10.0), (21, 11.0), (81, 12.0), (101, 14.0)])

    assert found.window(21, 81) == pytest.approx(60)
    assert as_plain(found, 100)["last"] < as_plain(found, 100)["first"] * 2
