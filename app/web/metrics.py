"""GET /metrics: gauges and counters for Prometheus, read from the tables when they are asked for.

    tables --look--> Numbers --collect--> prometheus-client --> text

Nothing is counted in this process, so that a cold start resets nothing: counters are the sums that each tick adds to.
Labels are few and fixed: no kind, no queue of a user's, no id. A scrape wakes the service and its database.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Header
from starlette.responses import Response

from app import watch
from app.db import Connection
from app.jobs.browse import Survey, survey
from app.jobs.services import Services
from app.summary import JOB_COUNTS, REMINDER_COUNTS, SKIPS
from app.version import VERSION
from app.web.deps import Here
from app.web.problems import RESPONSES

COUNT_CAP = 10_000

router = APIRouter(responses=RESPONSES)


@dataclass(frozen=True, slots=True)
class Numbers:
    """What one scrape reads."""

    vitals: watch.Vitals
    survey: Survey
    running: int
    totals: Mapping[str, int]


@router.get("/metrics", response_model=None)
async def metrics(services: Here, accept: Annotated[str, Header(max_length=1000)] = "") -> Response:
    """Return the metrics in the text format, or as OpenMetrics for who asks for it."""
    from prometheus_client import CollectorRegistry  # noqa: PLC0415 - a tick's cold start must not pay for it
    from prometheus_client.exposition import choose_encoder  # noqa: PLC0415 - the same

    async with services.database.acquire() as connection:
        numbers = await look(connection, services)
    registry = CollectorRegistry()
    registry.register(_Collector(numbers))
    encode, content_type = choose_encoder(accept)
    return Response(encode(registry), media_type=None, headers={"Content-Type": content_type})


RUNNING = """
    SELECT count(*)
    FROM (SELECT 1 FROM jobs WHERE status = 'running' LIMIT $1) AS running
"""

TOTALS = """
    SELECT name, value
    FROM tick_totals
    ORDER BY name
    LIMIT 200
"""


async def look(connection: Connection, services: Services) -> Numbers:
    """Read all that the metrics show; counts stop at 10,000 for each queue and priority."""
    settings = services.settings
    queues = [*settings.queues, "reminders"]
    keep = settings.done_retention_days * 86_400
    return Numbers(
        vitals=await watch.look(connection, queues),
        survey=await survey(connection, queues, list(services.kinds), keep, cap=COUNT_CAP),
        running=await connection.fetchval(RUNNING, COUNT_CAP),
        totals={row["name"]: row["value"] for row in await connection.fetch(TOTALS)},
    )


class _Collector:
    """What prometheus-client calls for the families of one scrape."""

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers

    def collect(self) -> Iterator[Any]:
        yield from _gauges(self._numbers)
        yield from _counters(self._numbers.totals)

    def describe(self) -> list[Any]:
        """Say nothing before the scrape."""
        return []


def _gauges(numbers: Numbers) -> Iterator[Any]:
    from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily  # noqa: PLC0415 - only a scrape needs it

    vitals, found = numbers.vitals, numbers.survey
    info = InfoMetricFamily("dormouse_build", "The version that answers.")
    info.add_metric([], {"version": VERSION})
    yield info
    due = GaugeMetricFamily("dormouse_jobs_due", "Due jobs, up to 10,000 a queue and priority.", labels=["lane"])
    due.add_metric(["jobs"], found.due)
    due.add_metric(["reminders"], found.reminders_due)
    yield due
    for name, help_text, value in (
        ("jobs_running", "Jobs under a lease.", numbers.running),
        ("jobs_dead", "Dead jobs, up to 10,000.", found.dead),
        ("jobs_unknown_kind", "Due jobs of kinds that this build does not know.", sum(found.unknown_kinds.values())),
        ("jobs_unserved", "Due jobs in queues that this instance does not serve.", sum(found.unserved_queues.values())),
        (
            "jobs_oldest_due_age_seconds",
            "Age of the job that is due longest, 0 for none.",
            found.oldest_due_age_seconds,
        ),
        ("reminders_due_soon", "Bookings of the next two hours whose reminder is not out.", vitals.reminders_due_soon),
        ("channels_suspended", "Channels that let nothing out.", len(vitals.channels_suspended)),
        ("alerts_untold", "Lines of alerts that an address has not taken, up to 1,000.", vitals.alerts_untold),
        ("tick_gap_p95_seconds", "Ninety-fifth percentile of the gaps of seven days.", vitals.tick_gap_p95_seconds),
    ):
        yield GaugeMetricFamily(f"dormouse_{name}", help_text, value=value or 0)
    yield from _moments(vitals)


def _moments(vitals: watch.Vitals) -> Iterator[Any]:
    """Yield times as seconds since 1970, and nothing for one that never was."""
    from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 - only a scrape needs it

    now, age = vitals.now.timestamp(), vitals.last_tick_age_seconds
    moments = {
        "dormouse_tick_last_timestamp_seconds": ("When the last tick began.", None if age is None else now - age),
        "dormouse_tick_last_success_timestamp_seconds": (
            "When the last tick began whose every section worked.",
            vitals.last_success_at.timestamp() if vitals.last_success_at else None,
        ),
    }
    for name, (help_text, value) in moments.items():
        if value is not None:
            yield GaugeMetricFamily(name, help_text, value=value)


def _counters(totals: Mapping[str, int]) -> Iterator[Any]:
    from prometheus_client.core import CounterMetricFamily  # noqa: PLC0415 - only a scrape needs it

    for name, help_text, prefix, outcomes in (
        ("dormouse_jobs", "Jobs by what a tick counted of them.", "jobs", JOB_COUNTS),
        ("dormouse_reminders", "Reminders by what a tick counted of them.", "reminders", REMINDER_COUNTS),
        ("dormouse_reminders_skipped", "Reminders that did not go out, by reason.", "reminders.skipped", SKIPS),
    ):
        label = "reason" if outcomes is SKIPS else "outcome"
        family = CounterMetricFamily(name, help_text, labels=[label])
        for outcome in outcomes:
            family.add_metric([outcome], totals.get(f"{prefix}.{outcome}", 0))
        yield family
    for name, help_text, key in (
        ("dormouse_ticks", "Ticks that left their record.", "ticks"),
        ("dormouse_tick_errors", "Sections of ticks that failed.", "errors"),
        ("dormouse_jobs_rescued", "Leases that ran out and were returned.", "rescued"),
        ("dormouse_jobs_crashed", "Jobs that were buried because their process died.", "crashed"),
        ("dormouse_jobs_pruned", "Finished rows that were deleted.", "pruned"),
        ("dormouse_alerts_told", "Things that a person was told of.", "alerted"),
    ):
        yield CounterMetricFamily(name, help_text, value=totals.get(key, 0))
