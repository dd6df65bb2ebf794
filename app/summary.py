"""What a tick is given and what it answers: the budget, and the summary that every step writes into.

The summary is the accumulator: nothing is counted elsewhere and gathered later. Ids and counts only.
"""

import math
import statistics
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from app.bookings.reminders import Planned
from app.config import Settings
from app.jobs.browse import Survey
from app.jobs.queue import Claimed
from app.version import VERSION

REMINDERS = "reminders"
LATE_SECONDS = 1800.0
GAP_SECONDS = 3600.0
SKIPS = ("cancelled", "moved", "started", "superseded")
JOB_COUNTS = ("claimed", "done", "retried", "dead", "snoozed", "expired", "lost", "released")
REMINDER_COUNTS = ("planned", "claimed", "sent", "retried", "failed", "uncertain")
REMINDER_RETURNS = ("lost", "released")
# How a reminder's job ended, in the reminders' own words: what was snoozed goes back without an attempt spent.
REMINDER_WORDS = {"done": "sent", "dead": "failed", "snoozed": "released"}


@dataclass(frozen=True, slots=True)
class Budget:
    """How much one tick may do: batch sizes, and *seconds* until it answers (None: no limit, for a worker)."""

    jobs: int
    reminders: int
    seconds: float | None
    is_dry_run: bool = False

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the budget of a tick that asks for nothing special."""
        return cls(settings.tick_jobs, settings.tick_reminders, settings.tick_budget_seconds)


@dataclass(eq=False)
class Summary:
    """One tick's answer; `as_dict` gives the JSON that DESIGN draws."""

    source: str
    tick_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    started_at: datetime | None = None
    duration_ms: int = 0
    round_trips: int = 0
    stopped_by: str = "empty"
    jobs: Counter[str] = field(default_factory=Counter)
    reminders: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    rescued: int = 0
    crashed: int = 0
    pruned: int = 0
    alerted: int = 0
    missed: int = 0
    suspended: list[str] = field(default_factory=list)
    late_seconds: list[float] = field(default_factory=list)
    errors: list[dict[str, str]] = field(default_factory=list)
    tick_gap_seconds: float | None = None
    _survey: Survey | None = None
    _next_reminder_at: datetime | None = None
    _has_more: bool = False

    def begin(self, found: Survey) -> None:
        """Take the tick's start and the gap since the last one from the database's clock."""
        self.started_at = found.now
        self.tick_gap_seconds = found.tick_gap_seconds

    def look(self, found: Survey) -> None:
        """Take the backlog as it is now."""
        self._survey = found

    def plan(self, planned: Planned, limit: int) -> None:
        """Count what planning did; a full batch of *limit* means that more may be owed."""
        self.reminders["planned"] += planned.planned
        self.skipped.update(superseded=planned.superseded, started=planned.missed, cancelled=planned.cancelled)
        self.missed += planned.missed
        self.suspended = planned.suspended
        self._next_reminder_at = planned.next_due_at
        self._has_more = planned.planned + planned.superseded >= limit > 0

    def claim(self, claimed: list[Claimed]) -> None:
        """Count rows that a lane has claimed."""
        for row in claimed:
            (self.reminders if row.queue == REMINDERS else self.jobs)["claimed"] += 1
            self.late_seconds.append(row.late_seconds)

    def report(self, claimed: Claimed, outcome: str, note: str | None) -> None:
        """Count one ended run under its queue's words; *note* is how a reminder's handler says which end it was."""
        self.count(claimed.queue, outcome, note)

    def count(self, queue: str, outcome: str, note: str | None = None) -> None:
        """Count *outcome* for a job of *queue*."""
        if queue != REMINDERS:
            self.jobs[outcome] += 1
        elif outcome == "done" and note in SKIPS:
            self.skipped[note] += 1
            self.missed += note == "started"
        elif outcome == "dead" and note == "uncertain":
            self.reminders["uncertain"] += 1
        elif outcome != "done" or note != "settled before":
            self.reminders[REMINDER_WORDS.get(outcome, outcome)] += 1

    def absorb(self, other: "Summary") -> None:
        """Add what *other* has counted of claims and ends, and what has failed."""
        self.jobs.update(other.jobs)
        self.reminders.update(other.reminders)
        self.skipped.update(other.skipped)
        self.missed += other.missed
        self.late_seconds += other.late_seconds
        self.errors += other.errors

    def crash(self, queue: str) -> None:
        """Count a job that was buried because its process died too often."""
        self.crashed += 1
        self.count(queue, "dead")

    def fail(self, section: str, reason: str) -> None:
        """Report a section that failed, in words that hold no personal data."""
        self.errors.append({"section": section, "error": reason})

    def fail_once(self, section: str, reason: str) -> None:
        """Report a section that failed, unless it was reported with these words before."""
        if {"section": section, "error": reason} not in self.errors:
            self.fail(section, reason)

    def finish(self, seconds: float, round_trips: int) -> None:
        """Close the books."""
        self.duration_ms = round(seconds * 1000)
        self.round_trips = round_trips

    @property
    def has_changed(self) -> bool:
        """Whether this tick moved any row, so that the backlog must be looked at again."""
        counts = (self.jobs, self.reminders, self.skipped)
        return bool(self.rescued or self.crashed or any(sum(count.values()) for count in counts))

    @property
    def attention(self) -> list[str]:
        """What a person must look at."""
        unknown = self._survey.unknown_kinds if self._survey else {}
        found = {
            "jobs_dead": self.jobs["dead"] > 0,
            "reminders_failed": self.reminders["failed"] + self.reminders["uncertain"] > 0,
            "reminders_missed": self.missed > 0,
            "unknown_kinds": bool(unknown),
            "channel_suspended": bool(self.suspended),
        }
        return [name for name, is_so in found.items() if is_so]

    @property
    def warnings(self) -> list[str]:
        """What a person may want to know: lateness over half an hour, a gap over an hour, queues that nobody serves."""
        found = {
            "late": max(self.late_seconds, default=0.0) > LATE_SECONDS,
            "tick_gap": (self.tick_gap_seconds or 0.0) > GAP_SECONDS,
            "unserved_queues": bool(self._survey and self._survey.unserved_queues),
        }
        return [name for name, is_so in found.items() if is_so]

    @property
    def is_ok(self) -> bool:
        """Whether every section ran and nothing needs a person."""
        return not self.errors and not self.attention

    @property
    def more_due(self) -> bool:
        """Whether another tick now would find work."""
        return self._has_more or bool(self._survey and self._survey.runnable_due)

    @property
    def next_due_at(self) -> datetime | None:
        """When the next job or reminder is due, None when nothing is waiting for a time."""
        times = (self._survey.next_due_at if self._survey else None, self._next_reminder_at)
        return min((moment for moment in times if moment is not None), default=None)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object of DESIGN 5."""
        return {
            "ok": self.is_ok,
            "attention": self.attention,
            "warnings": self.warnings,
            "errors": self.errors,
            "tick_id": self.tick_id,
            "source": self.source,
            "version": VERSION,
            "started_at": _iso(self.started_at),
            "duration_ms": self.duration_ms,
            "stopped_by": self.stopped_by,
            "jobs": _counts(self.jobs, JOB_COUNTS),
            "reminders": _counts(self.reminders, REMINDER_COUNTS)
            | {"skipped": _counts(self.skipped, SKIPS)}
            | _counts(self.reminders, REMINDER_RETURNS),
            "rescued": self.rescued,
            "crashed": self.crashed,
            "pruned": self.pruned,
            "alerted": self.alerted,
            "backlog": self._backlog(),
            "more_due": self.more_due,
            "next_due_at": _iso(self.next_due_at),
            "lateness_seconds": self._lateness(),
            "tick_gap_seconds": _rounded(self.tick_gap_seconds),
            "round_trips": self.round_trips,
        }

    def _backlog(self) -> dict[str, Any]:
        found = self._survey
        return {
            "due": found.due if found else None,
            "reminders_due": found.reminders_due if found else None,
            "capped": found.is_capped if found else False,
            "oldest_due_age_seconds": _rounded(found.oldest_due_age_seconds) if found else None,
            "dead": found.dead if found else None,
            "unknown_kinds": found.unknown_kinds if found else {},
        }

    def _lateness(self) -> dict[str, float | None]:
        late = sorted(max(0.0, seconds) for seconds in self.late_seconds)
        if not late:
            return {"p50": None, "max": None}
        return {"p50": _rounded(statistics.median(late)), "max": _rounded(late[-1])}


def _counts(found: Mapping[str, int], names: tuple[str, ...]) -> dict[str, int]:
    return {name: found.get(name, 0) for name in names}


def _rounded(seconds: float | None) -> float | None:
    if seconds is None or not math.isfinite(seconds):
        return None
    return round(seconds, 1)


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
