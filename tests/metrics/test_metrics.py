"""GET /metrics: valid text, names by convention, few labels, and counters that no cold start resets."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from app import tick
from app.config import Settings
from app.jobs import Job, Kind, Permanent, enqueue
from app.main import create_app
from app.tick import Budget
from tests.metrics.conftest import ADMIN_TOKEN, OPERATOR
from tests.operator.rows import add_job, add_tick

LABELS = {"lane", "outcome", "reason", "version"}
Values = dict[tuple[str, str], float]


def read(text: str) -> Values:
    """Return each sample by name and label value."""
    return {
        (sample.name, next(iter(sample.labels.values()), "")): sample.value
        for family in parse_text(text)
        for sample in family.samples
    }


async def scrape(client: httpx.AsyncClient) -> Values:
    return read((await client.get("/metrics")).text)


async def test_the_text_is_valid_and_named_by_convention(desk: httpx.AsyncClient, conn: Any) -> None:
    await add_tick(conn)
    answer = await desk.get("/metrics")

    families = list(parse_text(answer.text))
    samples = [sample for family in families for sample in family.samples]

    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.text.endswith("\n")
    assert len(families) >= 20
    assert all(family.name.startswith("dormouse_") and family.documentation for family in families)
    assert all(re.fullmatch(r"[a-z_][a-z0-9_]*", sample.name) for sample in samples)
    counters = [sample.name for family in families if family.type == "counter" for sample in family.samples]
    assert counters
    assert all(name.endswith("_total") for name in counters)
    assert {label for sample in samples for label in sample.labels} <= LABELS


async def test_openmetrics_is_given_to_who_asks_for_it(desk: httpx.AsyncClient) -> None:
    answer = await desk.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})

    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert answer.text.endswith("# EOF\n")
    assert list(parse_openmetrics(answer.text))  # type: ignore[no-untyped-call]  # the library's own


async def test_gauges_are_read_from_the_tables(desk: httpx.AsyncClient, conn: Any) -> None:
    await add_tick(conn, 300)
    await add_tick(conn, 60, errors='[{"section": "plan"}]')
    await conn.execute(
        "INSERT INTO jobs (kind, run_at) SELECT 'k', now() - interval '1 h' FROM generate_series(1, 1500)"
    )
    for status in ("dead", "running", "done"):
        await add_job(conn, status=status)
    await conn.execute("INSERT INTO channels (name, suspended_until) VALUES ('email', now() + interval '1 h')")
    now = float(await conn.fetchval("SELECT extract(epoch FROM now())::float8"))

    values = await scrape(desk)

    assert values["dormouse_jobs_due", "jobs"] == 1500
    assert values["dormouse_jobs_due", "reminders"] == 0
    assert values["dormouse_jobs_dead", ""] == 1
    assert values["dormouse_jobs_running", ""] == 1
    assert values["dormouse_jobs_unknown_kind", ""] == 1500
    assert values["dormouse_channels_suspended", ""] == 1
    assert values["dormouse_jobs_oldest_due_age_seconds", ""] == pytest.approx(3600, abs=5)
    assert values["dormouse_tick_last_timestamp_seconds", ""] == pytest.approx(now - 60, abs=5)
    assert values["dormouse_tick_last_success_timestamp_seconds", ""] == pytest.approx(now - 300, abs=5)


async def test_counters_outlive_the_process_and_the_ticks(
    desk: httpx.AsyncClient, conn: Any, services: Callable[..., Any], settings: Callable[..., Settings]
) -> None:
    async def work(job: Job) -> None:
        if job.payload["n"] == 0:
            raise Permanent("no")

    made = services({"note": Kind(work)})
    for n in (0, 1, 2):
        await enqueue(conn, "note", {"n": n})
    await tick.run(made, Budget(100, 100, 25))
    await enqueue(conn, "note", {"n": 3})
    await tick.run(made, Budget(100, 100, 25))
    await conn.execute("DELETE FROM jobs; DELETE FROM ticks")
    fresh: Any = create_app(settings(admin_token=ADMIN_TOKEN))

    async with httpx.AsyncClient(transport=httpx.ASGITransport(fresh), base_url="http://t", headers=OPERATOR) as cold:
        values, again = await scrape(desk), await scrape(cold)

    await fresh.state.services.database.close()
    assert values["dormouse_jobs_total", "claimed"] == 4
    assert values["dormouse_jobs_total", "done"] == 3
    assert values["dormouse_jobs_total", "dead"] == 1
    assert values["dormouse_ticks_total", ""] == 2
    counters = {key: value for key, value in values.items() if key[0].endswith("_total")}
    assert counters == {key: again[key] for key in counters}


async def test_what_never_was_has_no_moment(desk: httpx.AsyncClient) -> None:
    values = await scrape(desk)

    assert not [name for name, _ in values if name.endswith("timestamp_seconds")]
    assert values["dormouse_ticks_total", ""] == 0


async def test_ticks_older_than_90_days_go_and_the_sums_stay(conn: Any, services: Callable[..., Any]) -> None:
    made = services()
    for days in (1, 89, 91, 300):
        await add_tick(conn, days * 86_400)

    await tick.run(made, Budget(1, 1, 25))

    assert await conn.fetchval("SELECT count(*) FROM ticks") == 3
    assert await conn.fetchval("SELECT value FROM tick_totals WHERE name = 'ticks'") == 1


async def test_many_ticks_at_once_add_up_without_a_deadlock(conn: Any, services: Callable[..., Any]) -> None:
    async def work(_job: Job) -> None:
        return

    made = services({"note": Kind(work)})
    for _ in range(100):
        await enqueue(conn, "note")

    summaries = await asyncio.gather(*(tick.run(made, Budget(10, 10, 25)) for _ in range(20)))

    assert [summary.errors for summary in summaries] == [[]] * 20
    totals = {row["name"]: row["value"] for row in await conn.fetch("SELECT name, value FROM tick_totals")}
    assert (totals["ticks"], totals["jobs.done"]) == (20, 100)
