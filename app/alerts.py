"""Telling a person: what needs one is written down once for each address, and told until that address has taken it.

    dead jobs, missed bookings, suspended channels, unknown kinds --collect--> alerts, claimed --send--> told
                                                                                 ^                |
                                                                                 +----release-----+ at the next tick

Collecting marks the rows themselves and writes the ledger in one statement: a thing is collected once, whichever tick
sees it first. A digest holds topics, kinds, channels and counts: no payload, no error text, no name and no address.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from app.config import Settings
from app.db import Connection, Link
from app.jobs.scrub import scrub
from app.sinks import SEND_SECONDS, Sink, send, sinks_of

CLAIM_SECONDS = 60.0
LEAST_SECONDS = 0.5
RECORD_SECONDS = 0.4
MOST = 10_000
LABELS_SHOWN = 5
LABEL_CHARS = 40
BODY_CHARS = 1500
# How one thing and how many are called; the order is the digest's.
TOPICS = {
    "jobs_dead": ("dead job", "dead jobs"),
    "reminders_failed": ("failed reminder", "failed reminders"),
    "reminders_uncertain": ("reminder that may have been sent", "reminders that may have been sent"),
    "reminders_missed": ("booking that started unreminded", "bookings that started unreminded"),
    "channel_suspended": ("suspended channel", "suspended channels"),
    "unknown_kinds": ("kind that no build here knows", "kinds that no build here knows"),
}
# What Slack, Discord, Telegram or Markdown could take for a command, a mention or a link.
MARKUP = re.compile(r"://|[\x00-\x1f\x7f<>&@*`~|\[\](){}\\#\u2028-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Alert:
    """A line of the ledger: so many *things* of a *topic* with the same *label*, for one sink."""

    id: int
    sink: str
    topic: str
    label: str
    things: int


# A row is marked and written down in this one statement, so that no crash comes between. A job's mark is its fence: a
# second death has another one. A channel that is suspended again within two hours goes on with a spell that was told.
COLLECT = """
    WITH dead AS MATERIALIZED (
        SELECT id
        FROM jobs
        WHERE status = 'dead' AND alerted_fence IS DISTINCT FROM fence
        ORDER BY id
        LIMIT $3
        FOR NO KEY UPDATE SKIP LOCKED
    ),
    buried AS (
        UPDATE jobs
        SET alerted_fence = jobs.fence
        FROM dead
        WHERE jobs.id = dead.id
        RETURNING jobs.kind AS label,
            CASE WHEN jobs.queue <> 'reminders' THEN 'jobs_dead'
                WHEN jobs.last_error LIKE 'uncertain:%' THEN 'reminders_uncertain'
                ELSE 'reminders_failed' END AS topic
    ),
    late AS MATERIALIZED (
        SELECT booking_id, starts_at, remind_before, channel
        FROM reminders
        WHERE status = 'skipped' AND reason = 'started' AND alerted_at IS NULL AND starts_at > now() - interval '7 days'
        ORDER BY starts_at
        LIMIT $3
        FOR NO KEY UPDATE SKIP LOCKED
    ),
    missed AS (
        UPDATE reminders
        SET alerted_at = now()
        FROM late
        WHERE reminders.booking_id = late.booking_id AND reminders.starts_at = late.starts_at
            AND reminders.remind_before = late.remind_before AND reminders.channel = late.channel
        RETURNING reminders.channel AS label
    ),
    resting AS MATERIALIZED (
        SELECT name, (alerted_until > now() - interval '2 hours') IS TRUE AS is_told
        FROM channels
        WHERE suspended_until > now() AND alerted_until IS DISTINCT FROM suspended_until
        ORDER BY name
        FOR NO KEY UPDATE SKIP LOCKED
    ),
    suspended AS (
        UPDATE channels
        SET alerted_until = channels.suspended_until
        FROM resting
        WHERE channels.name = resting.name
        RETURNING channels.name AS label, resting.is_told
    ),
    strange AS (
        INSERT INTO alerted_kinds AS held (kind)
        SELECT DISTINCT kind FROM unnest($2::text[]) AS kind ORDER BY kind
        ON CONFLICT (kind) DO UPDATE
        SET seen_at = now(),
            told_at = CASE WHEN held.seen_at < now() - interval '7 days' THEN now() ELSE held.told_at END
        WHERE held.seen_at < now() - interval '1 day'
        RETURNING kind AS label, told_at < now() AS is_told
    ),
    found AS (
        SELECT topic, label, count(*) AS things FROM buried GROUP BY topic, label
        UNION ALL
        SELECT 'reminders_missed', label, count(*) FROM missed GROUP BY label
        UNION ALL
        SELECT 'channel_suspended', label, 1 FROM suspended WHERE NOT is_told
        UNION ALL
        SELECT 'unknown_kinds', label, 1 FROM strange WHERE NOT is_told
    ),
    added AS (
        INSERT INTO alerts (sink, topic, label, things, claimed_until)
        SELECT sink, topic, label, things, now() + make_interval(secs => $4)
        FROM found CROSS JOIN unnest($1::text[]) AS sink
        RETURNING id, sink, topic, label, things
    ),
    waiting AS MATERIALIZED (
        SELECT id
        FROM alerts
        WHERE told_at IS NULL AND sink = ANY ($1) AND (claimed_until <= now()) IS NOT FALSE
        ORDER BY id
        LIMIT $3
        FOR NO KEY UPDATE SKIP LOCKED
    ),
    untold AS (
        UPDATE alerts
        SET claimed_until = now() + make_interval(secs => $4)
        FROM waiting
        WHERE alerts.id = waiting.id
        RETURNING alerts.id, alerts.sink, alerts.topic, alerts.label, alerts.things
    )
    SELECT id, sink, topic, label, things FROM added
    UNION ALL
    SELECT id, sink, topic, label, things FROM untold
"""


async def collect(connection: Connection, sinks: Iterable[str], unknown_kinds: Iterable[str]) -> list[Alert]:
    """Write down for each of *sinks* what needs a person, and claim for a minute all that they were not told yet."""
    rows = await connection.fetch(COLLECT, list(sinks), list(unknown_kinds), MOST, CLAIM_SECONDS)
    return [Alert(*row.values()) for row in rows]


# Old lines go on the way out; what an address did not take for thirty days goes with them.
SETTLE_ALERTS = """
    WITH old_alerts AS (
        DELETE FROM alerts WHERE created_at < now() - interval '30 days'
    ),
    old_kinds AS (
        DELETE FROM alerted_kinds WHERE seen_at < now() - interval '30 days'
    )
    UPDATE alerts
    SET told_at = CASE WHEN sink = ANY ($2) THEN now() END, claimed_until = NULL
    WHERE id = ANY ($1::text[]::bigint[]) AND told_at IS NULL AND created_at >= now() - interval '30 days'
"""


async def settle_alerts(connection: Connection, alerts: Sequence[Alert], told: Iterable[str]) -> None:
    """Mark the *alerts* of the sinks *told* as told, and free the others for the next tick."""
    await connection.execute(SETTLE_ALERTS, [str(alert.id) for alert in alerts], list(told))


def digest(alerts: Sequence[Alert], public_url: str | None, secrets: tuple[str, ...] = ()) -> tuple[str, str]:
    """Return title and text of one message for *alerts*: short, and in letters that no chat interprets."""
    counts: dict[str, Counter[str]] = {topic: Counter() for topic in TOPICS}
    for alert in alerts:
        counts.setdefault(alert.topic, Counter())[_plain(alert.label, secrets)] += alert.things
    lines = [_line(topic, labels) for topic, labels in counts.items() if labels]
    text = "\n".join(lines)[:BODY_CHARS]
    if public_url:
        text += f"\n{public_url.rstrip('/')}/admin"
    things = sum(alert.things for alert in alerts)
    return f"Dormouse: {things} {'thing' if things == 1 else 'things'} to look at", text


def _line(topic: str, labels: Counter[str]) -> str:
    number = labels.total()
    one, many = TOPICS.get(topic, (topic, topic))
    shown = [f"{label} ({count})" if number > 1 else label for label, count in labels.most_common(LABELS_SHOWN)]
    rest = len(labels) - len(shown)
    return f"{number} {one if number == 1 else many}: {', '.join(shown)}" + (f" and {rest} more" if rest else "")


def _plain(label: str, secrets: tuple[str, ...]) -> str:
    text = MARKUP.sub("?", scrub(label, secrets))
    return text if len(text) <= LABEL_CHARS else text[: LABEL_CHARS - 3] + "..."


@dataclass(eq=False)
class Teller:
    """Who tells in one tick, over its link and before its deadline *until* (monotonic seconds, None: there is none).

    *told* counts things, *untaken* names the sinks that did not take a message: they hear it at the next tick.
    """

    settings: Settings
    link: Link
    until: float | None
    told: int = 0
    untaken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.sinks = sinks_of(self.settings)
        self.names = [sink.name for sink in self.sinks]

    async def tell(self, unknown_kinds: Iterable[str]) -> None:
        """Collect, send one digest to each sink, and settle; with no time left, all is left to the next tick."""
        seconds = self._seconds()
        if seconds < LEAST_SECONDS:
            return
        async with self.link.acquire() as connection:
            alerts = await collect(connection, self.names, unknown_kinds)
        if not alerts:
            return
        by_sink = {sink.name: [alert for alert in alerts if alert.sink == sink.name] for sink in self.sinks}
        heard = await asyncio.gather(*(self._tell_one(sink, by_sink[sink.name], seconds) for sink in self.sinks))
        async with self.link.acquire() as connection:
            await settle_alerts(connection, alerts, [name for name in heard if name])
        self.told += max(sum(alert.things for alert in by_sink[name]) if name else 0 for name in heard)

    async def _tell_one(self, sink: Sink, alerts: Sequence[Alert], seconds: float) -> str | None:
        """Return the sink's name when it took all of *alerts*; one that failed in this tick is not asked again."""
        if not alerts or sink.name in self.untaken:
            return None
        title, text = digest(alerts, self.settings.public_url, self.settings.secret_values())
        if await send(sink, title, text, seconds):
            return sink.name
        self.untaken.add(sink.name)
        return None

    def _seconds(self) -> float:
        if self.until is None:
            return SEND_SECONDS
        return min(SEND_SECONDS, self.until - time.monotonic() - RECORD_SECONDS)
