"""The queue and its reminders as a few dictionaries: what every statement should have done, without a database.

    jobs[id] -> Job        bookings[id] -> Booking        reminders[booking, start, offset] -> Reminder

Times are hours from the beginning, and the order in which jobs came due is a counter. No time passes by itself.
"""

from collections import Counter
from dataclasses import dataclass, field, replace

FINISHED = ("done", "cancelled", "expired")
MAX_CRASHES = 3
RETRIES = 2
OFFSETS = (24.0, 1.0)


@dataclass
class Job:
    """One row of `jobs`; *place* is its turn, None while it is not due."""

    id: int
    queue: str = "default"
    priority: int = 0
    key: str | None = None
    place: int | None = None
    max_attempts: int = 8
    is_too_late: bool = False
    start: float = 0.0
    status: str = "ready"
    attempts: int = 0
    crashes: int = 0
    fence: int = 0
    is_lease_over: bool = False


@dataclass
class Booking:
    """One row of `bookings`: when it starts, whether it stands, and its own offsets if it has any."""

    start: float
    is_confirmed: bool = True
    own: tuple[float, ...] | None = None


@dataclass
class Reminder:
    """One row of `reminders`."""

    job_id: int | None
    status: str
    reason: str | None = None


@dataclass(frozen=True)
class Lease:
    """What a claim has given out: it is kept for ever, so that stale ones are used too."""

    id: int
    fence: int
    attempts: int
    crashes: int
    max_attempts: int
    reminder: tuple[str, float, float] | None = None

    def after_failure(self) -> str:
        """Say what a failed run becomes."""
        failures = max(self.attempts - self.crashes, 1)
        return "dead" if failures > RETRIES or failures >= self.max_attempts else "retried"


Key = tuple[str, float, float]


@dataclass
class Model:
    """All rows, and what was sent."""

    is_hold: bool = False
    is_suspended: bool = False
    jobs: dict[int, Job] = field(default_factory=dict)
    bookings: dict[str, Booking] = field(default_factory=dict)
    reminders: dict[Key, Reminder] = field(default_factory=dict)
    keys: dict[int, Key] = field(default_factory=dict)
    sent: Counter[str] = field(default_factory=Counter)
    places: int = 0

    def place(self) -> int:
        """Return the next turn."""
        self.places += 1
        return self.places

    def holder(self, key: str | None) -> Job | None:
        """Return the row that holds the dedupe key *key*."""
        return next((job for job in self.jobs.values() if key is not None and job.key == key), None)

    def due(self, queue: str, *, has_crashed: bool) -> list[Job]:
        """Return what a claim of *queue* may take, first come first."""
        found = [
            job
            for job in self.jobs.values()
            if (job.status, job.queue, job.crashes > 0) == ("ready", queue, has_crashed)
            and job.place is not None
            and not job.is_too_late
        ]
        if queue == "reminders" and not has_crashed:
            return sorted(found, key=lambda job: (job.start, job.id))
        return sorted(found, key=lambda job: (-job.priority * (not has_crashed), job.place, job.id))

    def claim(self, job: Job) -> Lease:
        """Lease one job."""
        job.status, job.is_lease_over = "running", False
        job.attempts += 1
        job.fence += 1
        key = self.keys.get(job.id)
        return Lease(job.id, job.fence, job.attempts, job.crashes, job.max_attempts, key)

    def is_ours(self, lease: Lease) -> bool:
        """Say whether *lease* still holds its job."""
        job = self.jobs.get(lease.id)
        return job is not None and (job.status, job.fence) == ("running", lease.fence)

    def settle(self, lease: Lease, outcome: str, *, is_due: bool = True) -> bool:
        """End a run, unless its lease was lost; say whether it was ours."""
        if not self.is_ours(lease):
            return False
        job = self.jobs[lease.id]
        job.status = outcome if outcome in ("done", "dead") else "ready"
        if outcome in ("snoozed", "released"):
            job.attempts -= 1
        if outcome in ("retried", "snoozed"):
            job.place = self.place() if is_due else None
        return True

    def rescue(self) -> dict[int, str]:
        """Bring back, or bury, what runs under a lease that is over."""
        moved = {}
        for job in self.jobs.values():
            if job.status == "running" and job.is_lease_over:
                job.crashes += 1
                job.status = moved[job.id] = "dead" if job.crashes >= MAX_CRASHES else "ready"
        return moved

    def expire(self) -> set[int]:
        """Finish what is too late."""
        late = {job.id for job in self.jobs.values() if job.status == "ready" and job.is_too_late}
        for job_id in late:
            self.jobs[job_id].status = "expired"
        return late

    def prune(self) -> int:
        """Forget what is finished, dead jobs excepted."""
        old = [job.id for job in self.jobs.values() if job.status in FINISHED]
        for job_id in old:
            del self.jobs[job_id]
        return len(old)

    def requeue(self, job: Job) -> None:
        """Send a dead job round again."""
        job.status, job.place, job.attempts, job.crashes = "ready", self.place(), 0, 0

    def let_start(self, booking_id: str, hours: float) -> None:
        """Move a booking with all its reminders and jobs *hours* towards the past."""
        self.bookings[booking_id].start -= hours
        shifted = {
            (b, start - hours if b == booking_id else start, o): r for (b, start, o), r in self.reminders.items()
        }
        self.reminders = shifted
        for job_id, (name, start, offset) in list(self.keys.items()):
            if name == booking_id:
                self.keys[job_id] = (name, start - hours, offset)
                if job_id in self.jobs:
                    self.jobs[job_id].start -= hours
                    self.jobs[job_id].is_too_late = self.jobs[job_id].start <= 0

    def owed(self, booking: Booking) -> list[float]:
        """Return the offsets whose hour has come, nearest first."""
        if not booking.is_confirmed or booking.start <= 0:
            return []
        return sorted(
            {offset for offset in (OFFSETS if booking.own is None else booking.own) if booking.start <= offset}
        )

    def plan(self) -> tuple[dict[Key, str], Counter[str]]:
        """Record what is owed: return each new record's status, and the counts that the caller is told."""
        before = {key: replace(reminder) for key, reminder in self.reminders.items()}
        told, fresh = self._close(before), {}
        for name, booking in self.bookings.items():
            offsets = self.owed(booking)
            for offset in offsets:
                status = self._fresh_status(before, (name, booking.start, offset), is_nearest=offset == offsets[0])
                if status is not None:
                    fresh[name, booking.start, offset] = status
                    told["planned" if status == "planned" else "superseded"] += 1
        for key, status in fresh.items():
            self.reminders[key] = Reminder(None, status, None if status == "planned" else "superseded")
        return fresh, told

    def _fresh_status(self, before: dict[Key, Reminder], key: Key, *, is_nearest: bool) -> str | None:
        name, start, offset = key
        has_nearer = any(
            (b, s) == (name, start) and o < offset and held.status != "skipped" for (b, s, o), held in before.items()
        )
        held, may_go = before.get(key), is_nearest and not has_nearer
        if held is None:
            return "planned" if may_go else "skipped"
        is_void = held.status == "skipped" and held.reason in ("moved", "cancelled")
        return "planned" if is_void and may_go else None

    def _close(self, before: dict[Key, Reminder]) -> Counter[str]:
        told: Counter[str] = Counter()
        for key, held in before.items():
            if held.status != "planned":
                continue
            job = self.jobs.get(held.job_id or 0)
            status = None if job is None else job.status
            if status == "dead":
                self.reminders[key] = Reminder(held.job_id, "failed")
            elif status == "expired" or (status in (None, "cancelled") and key[1] <= 0):
                self.reminders[key] = Reminder(held.job_id, "skipped", "started")
                told["missed"] += 1
            elif status in (None, "cancelled"):
                self.reminders[key] = Reminder(held.job_id, "skipped", "cancelled by hand")
                told["cancelled"] += 1
        return told

    def remind(self, lease: Lease, trouble: str) -> str:
        """Run a reminder's job: change its record, and return how the run ends."""
        key = lease.reminder
        held = None if key is None else self.reminders.get(key)
        if key is None or held is None or held.status in ("sent", "skipped"):
            return "done"
        reason = self._skip_reason(key)
        if reason is not None:
            held.status, held.reason = "skipped", reason
            return "done"
        if self.is_suspended:
            return "snoozed"
        if self.is_hold and held.reason == "sending":
            held.status, held.reason = "uncertain", "held"
            return "dead"
        return self._send(lease, held, key[0], trouble)

    def _send(self, lease: Lease, held: Reminder, name: str, trouble: str) -> str:
        held.status, held.reason = "planned", "sending"
        if trouble in ("", "maybe"):
            self.sent[name] += 1
        if trouble == "":
            held.status, held.reason = "sent", None
            return "done"
        if trouble == "maybe" and self.is_hold:
            held.status, held.reason = "uncertain", "held"
            return "dead"
        if trouble == "refused":
            held.status, held.reason = "failed", "refused"
            return "dead"
        if trouble != "maybe":
            held.reason = None
        self.is_suspended = self.is_suspended or trouble == "suspended"
        return "snoozed" if trouble == "suspended" else lease.after_failure()

    def _skip_reason(self, key: Key) -> str | None:
        name, start, offset = key
        booking = self.bookings[name]
        if not booking.is_confirmed:
            return "cancelled"
        if booking.start != start:
            return "moved"
        if booking.start <= 0:
            return "started"
        return "superseded" if any(other < offset for other in self.owed(booking)) else None
