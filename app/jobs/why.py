"""Why a job stands where it stands: every rule that decides over it, what the rule says now, and what to do.

    row + scene --explain--> status, kind, queue, due, expiry, timeout, attempts, crashes, channel, tick, turn
                             ... and last of all, what to do

`look` reads, `explain` is a pure function: command line, API and page show the same list.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from app.config import Settings
from app.db import Connection
from app.jobs.browse import JobRow
from app.jobs.job import Kind

LATE_TICK_SECONDS = 3600.0
AHEAD_CAP = 1000
WHAT_TO_DO = "what to do"
UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule and its *result* as a sentence; *advice* says what to do where it is in the way."""

    rule: str
    result: str
    is_blocking: bool = False
    advice: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What stands around a job: the database's clock, the ticks, what this build serves, and what comes before it.

    *kinds* are timeouts in seconds by name; *suspended* is until when, by channel; *ahead* stops at 1,000.
    """

    now: datetime
    last_tick_at: datetime | None
    kinds: Mapping[str, float]
    queues: Sequence[str]
    budget_seconds: float
    max_crashes: int
    ahead: int = 0
    suspended: Mapping[str, datetime] = field(default_factory=dict)


SCENE = """
    SELECT now() AS now,
        (SELECT max(started_at) FROM ticks) AS last_tick_at,
        (
            SELECT count(*) FROM (
                SELECT 1
                FROM unnest('{1,0,-1}'::smallint[]) AS level (priority)
                CROSS JOIN LATERAL (
                    SELECT 1 FROM jobs
                    WHERE status = 'ready' AND crashes = 0 AND queue = $1 AND priority = level.priority
                        AND run_at <= now()
                        AND (level.priority > $2 OR (level.priority = $2 AND (run_at, id) < ($3, $4)))
                    ORDER BY run_at, id
                    LIMIT $5
                ) AS due
                LIMIT $5
            ) AS before
        ) AS ahead,
        ARRAY(SELECT name FROM channels WHERE suspended_until > now() ORDER BY name) AS names,
        ARRAY(SELECT suspended_until FROM channels WHERE suspended_until > now() ORDER BY name) AS untils
"""


async def look(connection: Connection, row: JobRow, settings: Settings, kinds: Mapping[str, Kind]) -> Scene:
    """Read what stands around *row*, in one statement."""
    found = await connection.fetchrow(SCENE, row.queue, row.priority, row.run_at, row.id, AHEAD_CAP)
    assert found is not None  # noqa: S101 - a SELECT of scalars returns one row
    return Scene(
        now=found["now"],
        last_tick_at=found["last_tick_at"],
        kinds={name: kind.timeout for name, kind in kinds.items()},
        queues=[*settings.queues, "reminders"],
        budget_seconds=settings.tick_budget_seconds,
        max_crashes=settings.max_crashes,
        ahead=found["ahead"],
        suspended=dict(zip(found["names"], found["untils"], strict=True)),
    )


def explain(row: JobRow, scene: Scene) -> list[Rule]:
    """Return every rule that decides over *row*, in the order in which they decide; the last one says what to do."""
    states = {"ready": _ready, "running": _running, "dead": _dead}
    rules = states.get(row.status, _ended)(row, scene)
    blocking = [rule for rule in rules if rule.is_blocking and rule.advice]
    return [*rules, Rule(WHAT_TO_DO, " ".join(rule.advice for rule in blocking) or _nothing_to_do(row))]


def _nothing_to_do(row: JobRow) -> str:
    if row.status == "ready":
        return "Nothing: the next tick claims it."
    if row.status == "running":
        return "Nothing: wait for its end. A lease that runs out sends it back to the queue."
    return "Nothing: it has come to its end. Enqueue it anew if it must run again."


def _ready(row: JobRow, scene: Scene) -> list[Rule]:
    return [
        Rule("status", "ready: it waits to be claimed"),
        _kind(row, scene),
        _queue(row, scene),
        _due(row, scene),
        *_expiry(row, scene),
        *_timeout(row, scene),
        *_attempts(row),
        *_crashes(row, scene),
        *_channel(row, scene),
        tick_rule(scene.last_tick_at, scene.now),
        *_turn(row, scene),
    ]


def _kind(row: JobRow, scene: Scene) -> Rule:
    if row.kind in scene.kinds:
        return Rule("kind", f"{row.kind} is known to this build")
    advice = "Deploy a build that knows its kind (HANDLER_MODULES names the modules), or cancel it."
    return Rule("kind", f"{row.kind} is unknown to this build: it waits untouched", is_blocking=True, advice=advice)


def _queue(row: JobRow, scene: Scene) -> Rule:
    if row.queue in scene.queues:
        return Rule("queue", f"{row.queue} is served here")
    advice = f"Name {row.queue} in QUEUES of an instance that ticks, or cancel it."
    return Rule("queue", f"{row.queue} is not served here", is_blocking=True, advice=advice)


def _due(row: JobRow, scene: Scene) -> Rule:
    if row.run_at <= scene.now:
        return Rule("due", f"due since {at(row.run_at)}, {span(row.run_at, scene.now)} ago")
    why = " after a failed attempt" if row.attempts > row.crashes else ""
    result = f"not due until {at(row.run_at)}, in {span(scene.now, row.run_at)}{why}"
    return Rule("due", result, is_blocking=True, advice="Wait until it is due.")


def _expiry(row: JobRow, scene: Scene) -> list[Rule]:
    if row.expires_at is None:
        return []
    if row.expires_at > scene.now:
        return [Rule("expiry", f"useless after {at(row.expires_at)}, in {span(scene.now, row.expires_at)}")]
    advice = "Nothing: it is too late for it, the next tick ends it as expired."
    return [Rule("expiry", f"useless since {at(row.expires_at)}", is_blocking=True, advice=advice)]


def _timeout(row: JobRow, scene: Scene) -> list[Rule]:
    seconds = scene.kinds.get(row.kind)
    if seconds is None or row.queue == "reminders":
        return []
    if seconds <= scene.budget_seconds:
        return [Rule("timeout", f"may run {seconds:g} s of a tick's {scene.budget_seconds:g} s")]
    advice = "Lower the kind's timeout, raise TICK_BUDGET_SECONDS, or run `dormouse worker`."
    result = f"may run {seconds:g} s, a tick has {scene.budget_seconds:g} s: no tick starts it"
    return [Rule("timeout", result, is_blocking=True, advice=advice)]


def _attempts(row: JobRow) -> list[Rule]:
    failed = max(row.attempts - row.crashes, 0)
    if failed == 0:
        return [Rule("attempts", f"none has failed, {row.max_attempts} are allowed")]
    return [
        Rule("attempts", f"{failed} of {row.max_attempts} have failed; the last one: {row.last_error or 'unknown'}")
    ]


def _crashes(row: JobRow, scene: Scene) -> list[Rule]:
    if row.crashes == 0:
        return []
    result = f"its process died {row.crashes} of {scene.max_crashes} times: it runs alone, last in a tick"
    return [Rule("crashes", result)]


def _channel(row: JobRow, scene: Scene) -> list[Rule]:
    name = row.payload.get("channel") if row.queue == "reminders" and isinstance(row.payload, dict) else None
    return channel_rules([name] if isinstance(name, str) else [], scene.suspended, scene.now)


def channel_rules(names: Sequence[str], suspended: Mapping[str, datetime], now: datetime) -> list[Rule]:
    """Return a rule for each channel of *names*: open, or suspended until."""
    rules = []
    for name in names:
        until = suspended.get(name)
        if until is None:
            rules.append(Rule("channel", f"{name} is open"))
            continue
        advice = f"Put right what the channel complained of, then run `dormouse channels resume {name}`; or wait."
        result = f"{name} is suspended until {at(until)}, for {span(now, until)}"
        rules.append(Rule("channel", result, is_blocking=True, advice=advice))
    return rules


def tick_rule(last_tick_at: datetime | None, now: datetime) -> Rule:
    """Say when the last tick was: nothing runs without one."""
    advice = "Check the scheduler: it must call POST /api/cron/tick; `dormouse tick` does one now."
    if last_tick_at is None:
        return Rule("tick", "there was never a tick", is_blocking=True, advice=advice)
    is_late = (now - last_tick_at).total_seconds() > LATE_TICK_SECONDS
    result = f"the last tick was {span(last_tick_at, now)} ago"
    return Rule("tick", result, is_blocking=is_late, advice=advice if is_late else "")


def _turn(row: JobRow, scene: Scene) -> list[Rule]:
    if row.crashes > 0 or row.run_at > scene.now or row.queue == "reminders":
        return []
    if scene.ahead == 0:
        return [Rule("turn", "it is the next of its queue")]
    count = f"{scene.ahead} or more" if scene.ahead >= AHEAD_CAP else str(scene.ahead)
    return [Rule("turn", f"{count} due jobs of its queue come first")]


def _running(row: JobRow, scene: Scene) -> list[Rule]:
    since = f", for {span(row.started_at, scene.now)}" if row.started_at else ""
    rules = [Rule("status", f"running: attempt {row.attempts}{since}")]
    if row.locked_until is not None and row.locked_until > scene.now:
        left = span(scene.now, row.locked_until)
        rules.append(Rule("lease", f"held until {at(row.locked_until)}, another {left}", is_blocking=True))
        return [*rules, *_crashes(row, scene)]
    advice = "The next tick rescues it: its process died or was frozen."
    rules.append(Rule("lease", "its lease has run out", is_blocking=True, advice=advice))
    return [*rules, *_crashes(row, scene), tick_rule(scene.last_tick_at, scene.now)]


def _dead(row: JobRow, scene: Scene) -> list[Rule]:
    since = f"dead since {at(row.finished_at)}, {span(row.finished_at, scene.now)}" if row.finished_at else "dead"
    failed = max(row.attempts - row.crashes, 0)
    again = f"Put right what failed, then run `dormouse jobs requeue {row.id}`."
    if row.last_error == "crashed":
        reason = f"its process died {row.crashes} times while it ran"
        again = f"Find out what it does to its process (memory, exit), then run `dormouse jobs requeue {row.id}`."
    elif failed >= row.max_attempts:
        reason = f"all {row.max_attempts} attempts have failed; the last one: {row.last_error}"
    else:
        reason = f"given up after {failed} of {row.max_attempts} attempts: {row.last_error}"
    return [Rule("status", since), Rule("reason", reason, is_blocking=True, advice=again)] + (
        [] if row.kind in scene.kinds else [_kind(row, scene)]
    )


def _ended(row: JobRow, scene: Scene) -> list[Rule]:
    words = {
        "done": "done",
        "cancelled": "cancelled by an operator",
        "expired": "expired: its time passed before it ran",
    }
    since = f" since {at(row.finished_at)}, {span(row.finished_at, scene.now)}" if row.finished_at else ""
    return [Rule("status", words.get(row.status, row.status) + since), *_attempts(row)]


def at(moment: datetime) -> str:
    """Return *moment* to the second, as ISO 8601."""
    return moment.isoformat(sep=" ", timespec="seconds")


def span(start: datetime, end: datetime) -> str:
    """Return the time from *start* to *end* in its two largest units."""
    seconds = max(int((end - start).total_seconds()), 0)
    parts: list[str] = []
    for size, unit in UNITS:
        if seconds >= size and len(parts) < 2:  # noqa: PLR2004 - two units are exact enough for a person
            parts.append(f"{seconds // size} {unit}")
        seconds %= size
    return " ".join(parts) or "0 s"
