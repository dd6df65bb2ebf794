"""Rules, any number in any order: each does one thing to the product and to the model, and both must answer alike.

rule -> product, model -> same answer -> same rows         stale leases and missing ids are used like any other
"""

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.bookings import reminders
from app.bookings.book import NewBooking, cancel_booking, put_booking
from app.errors import Conflict, NotFound
from app.jobs import NewJob, enqueue_many, operate, queue, sweep
from app.jobs.queue import Claimed, Verdict
from app.jobs.runner import Ending, judge
from tests.evidence.model import draws
from tests.evidence.model import model as told
from tests.evidence.model.bench import FAILED, Bench


class Machine(RuleBasedStateMachine):
    """The queue and the reminders on one side, the model on the other; a subclass names the *bench*."""

    bench: Bench

    def __init__(self) -> None:
        super().__init__()
        self.model = told.Model()
        self.leases: list[tuple[told.Lease, Claimed]] = []
        self.started = 0
        self.may_plan = True

    @initialize(is_hold=st.booleans(), start=draws.STARTS, own=draws.OWN, max_attempts=st.integers(1, 3))
    def begin(self, start: float, own: tuple[float, ...] | None, max_attempts: int, *, is_hold: bool) -> None:
        """Begin with a booking and two jobs: most rules then have something to act on."""
        self.bench.clean()
        self.model.is_hold = is_hold
        self.book_or_move("b1", start, own)
        self.put_in([None, "k1"], 0, max_attempts, is_due=True)
        self.plan()
        self.claim("jobs", 1)
        self.claim("reminders", 1)

    @rule(
        keys=st.lists(st.sampled_from([None, None, "k1", "k2"]), min_size=1, max_size=3),
        priority=st.integers(-1, 1),
        is_due=st.sampled_from([True, True, True, False]),
        max_attempts=st.integers(1, 3),
    )
    def put_in(self, keys: list[str | None], priority: int, max_attempts: int, *, is_due: bool) -> None:
        run_at = None if is_due else self.bench.at(1)
        jobs = [NewJob("note", {}, key, priority=priority, run_at=run_at, max_attempts=max_attempts) for key in keys]

        rows = self.bench.wait(enqueue_many(self.bench.connection, jobs))

        place = self.model.place() if is_due else None
        for key, row in zip(keys, rows, strict=True):
            held = self.model.holder(key)
            assert row.is_new == (held is None)
            assert held is None or held.id == row.id
            if held is None:
                self.model.jobs[row.id] = told.Job(row.id, "default", priority, key, place, max_attempts)

    def claim(self, lane: str, limit: int) -> None:
        connection, name = self.bench.connection, "reminders" if lane.endswith("reminders") else "default"
        due = self.model.due(name, has_crashed=lane.startswith("crashed"))

        if lane == "jobs":
            rows = self.bench.wait(queue.claim(connection, [name], draws.KINDS, limit, draws.LEASE))
        elif lane == "reminders":
            rows = self.bench.wait(queue.claim_reminders(connection, draws.KINDS, limit, draws.LEASE))
        else:
            rows = self.bench.wait(queue.claim_suspect(connection, [name], draws.KINDS, draws.LEASE))
            due, limit = sorted(due, key=lambda job: [row.id for row in rows] != [job.id]), 1

        self._take(rows, due[:limit])

    def _take(self, rows: list[Claimed], jobs: list[told.Job]) -> None:
        assert [row.id for row in rows] == [job.id for job in jobs]
        for row, job in zip(rows, jobs, strict=True):
            lease = self.model.claim(job)
            assert (row.fence, row.attempts, row.crashes) == (lease.fence, lease.attempts, lease.crashes)
            self.leases.append((lease, row))

    def end(self, pick: int, outcome: str, trouble: str, *, is_by_hand: bool) -> None:
        """End a run under any lease, held or lost: a reminder's by its own handler, unless it is done by hand."""
        lease, claimed = self._any_lease(pick)
        if lease.reminder is not None and not is_by_hand:
            verdict = self.bench.remind(claimed, trouble, is_hold=self.model.is_hold)
            assert verdict.outcome == self.model.remind(lease, trouble)
        elif outcome == "failed":
            verdict = judge(claimed, FAILED, Ending(RuntimeError("it failed"))) or Verdict(0, 0, "lost")
            assert verdict.outcome == lease.after_failure()
        else:
            verdict = Verdict(lease.id, lease.fence, outcome)

        won = self.bench.wait(queue.settle(self.bench.connection, [verdict]))

        self.may_plan = True
        is_ours = self.model.settle(lease, verdict.outcome, is_due=verdict.outcome != "snoozed" or verdict.delay == 0)
        assert won == ({lease.id} if is_ours else set())

    # Hypothesis leaves out half of the rules in each run. These are what the others live on: three chances each.
    to_claim = rule(lane=draws.LANES, limit=draws.LIMITS)
    to_end = rule(pick=draws.ANY, outcome=draws.OUTCOMES, trouble=draws.TROUBLES, is_by_hand=draws.BY_HAND)
    claim_1 = precondition(draws.is_ready)(to_claim(claim))
    claim_2 = precondition(draws.is_ready)(to_claim(claim))
    claim_3 = precondition(draws.is_ready)(to_claim(claim))
    end_1 = precondition(draws.is_leased)(to_end(end))
    end_2 = precondition(draws.is_leased)(to_end(end))
    end_3 = precondition(draws.is_leased)(to_end(end))

    @precondition(lambda self: self.leases)
    @rule(pick=draws.ANY)
    def renew(self, pick: int) -> None:
        lease, _ = self._any_lease(pick)

        ours = self.bench.wait(queue.heartbeat(self.bench.connection, [(lease.id, lease.fence)], draws.LEASE))

        assert ours == ({lease.id} if self.model.is_ours(lease) else set())
        if ours:
            self.model.jobs[lease.id].is_lease_over = False

    @precondition(lambda self: self._in("running"))
    @rule(pick=draws.ANY)
    def crash(self, pick: int) -> None:
        job = self._pick(self._in("running"), pick)
        if job is not None:
            self.bench.execute(draws.OVER, job.id)
            job.is_lease_over = True

    @precondition(lambda self: any(job.is_lease_over for job in self._in("running")))
    @rule()
    def rescue(self) -> None:
        moved = self.bench.wait(sweep.rescue(self.bench.connection, 1000, told.MAX_CRASHES))

        assert {row.id: row.status for row in moved} == self.model.rescue()
        self.may_plan = True

    @precondition(lambda self: self.model.jobs)
    @rule(pick=draws.ANY)
    def be_too_late(self, pick: int) -> None:
        job = self._pick([job for job in self.model.jobs.values() if job.queue == "default"], pick)
        if job is not None:
            self.bench.execute(draws.LATE, job.id)
            job.is_too_late = True

    @precondition(lambda self: any(job.is_too_late for job in self._in("ready")))
    @rule()
    def expire(self) -> None:
        moved = self.bench.wait(sweep.expire(self.bench.connection, 1000))

        assert {row.id for row in moved} == self.model.expire()
        self.may_plan = True

    @precondition(lambda self: any(job.place is None for job in self.model.jobs.values()))
    @rule(pick=draws.ANY)
    def come_due(self, pick: int) -> None:
        job = self._pick([job for job in self.model.jobs.values() if job.place is None], pick)
        if job is not None:
            self.bench.execute(draws.DUE, job.id)
            job.place = self.model.place()

    @precondition(lambda self: self._in(*told.FINISHED))
    @rule()
    def prune(self) -> None:
        assert self.bench.wait(sweep.prune(self.bench.connection, 0.0, 1000)) == self.model.prune()
        self.may_plan = True

    @rule(pick=draws.ANY, verb=st.sampled_from(["cancel", "requeue"]))
    def operate(self, pick: int, verb: str) -> None:
        job = self._pick([*self.model.jobs.values(), None], pick)
        wanted = "ready" if verb == "cancel" else "dead"
        refusal: type[Exception] | None = NotFound if job is None else None if job.status == wanted else Conflict

        try:
            act: Any = operate.cancel if verb == "cancel" else operate.requeue
            self.bench.wait(act(self.bench.connection, 0 if job is None else job.id))
            got: type[Exception] | None = None
        except (NotFound, Conflict) as error:
            got = type(error)

        assert got is refusal
        if job is not None and refusal is None:
            self.may_plan = True
            if verb == "cancel":
                job.status = "cancelled"
            else:
                self.model.requeue(job)

    @rule(name=draws.NAMES, start=draws.STARTS, own=draws.OWN)
    def book_or_move(self, name: str, start: float, own: tuple[float, ...] | None) -> None:
        offsets = None if own is None else tuple(timedelta(hours=hours) for hours in own)
        booking = NewBooking(
            id=name, starts_at=self.bench.at(start), attendee_email=f"{name}@example.org", remind_before=offsets
        )

        _, is_new = self.bench.wait(put_booking(self.bench.connection, booking))

        assert is_new == (name not in self.model.bookings)
        self.model.bookings[name] = told.Booking(start, own=own)
        self.may_plan = True

    @precondition(lambda self: self.model.bookings)
    @rule(name=draws.NAMES)
    def cancel_booking(self, name: str) -> None:
        booking = self.model.bookings.get(name)
        if booking is not None:
            self.bench.wait(cancel_booking(self.bench.connection, name))
            booking.is_confirmed = False
            self.may_plan = True

    @precondition(lambda self: self.model.bookings and self.started < draws.STARTS_MOST)
    @rule(name=draws.NAMES)
    def let_start(self, name: str) -> None:
        if name in self.model.bookings:
            self.started += 1
            hours = 240.0 * self.started
            self.bench.execute(draws.LET_START, name, timedelta(hours=hours))
            self.model.let_start(name, hours)
            self.may_plan = True

    @precondition(lambda self: self.model.is_suspended)
    @rule()
    def resume(self) -> None:
        self.bench.execute(draws.RESUME)
        self.model.is_suspended = False

    @precondition(lambda self: self.may_plan)
    @rule()
    def plan(self) -> None:
        offsets = [timedelta(hours=hours) for hours in told.OFFSETS]

        planned = self.bench.wait(reminders.plan(self.bench.connection, offsets, ["email"], 1000))

        self.may_plan = False
        fresh, counts = self.model.plan()
        answer = {name: getattr(planned, name) for name in ("planned", "superseded", "missed", "cancelled")}
        assert answer == {name: counts[name] for name in answer}
        for key, job_id in self._job_ids().items():
            if fresh.get(key) == "planned":
                assert job_id is not None
                self.model.reminders[key].job_id = job_id
                self.model.keys[job_id] = key
                self.model.jobs[job_id] = told.Job(job_id, "reminders", place=self.model.place(), start=key[1])

    def _job_ids(self) -> dict[told.Key, int | None]:
        return {self._key(row): row["job_id"] for row in self.bench.fetch(draws.REMINDERS)}

    def _key(self, row: Any) -> told.Key:
        before = row["remind_before"] / timedelta(hours=1)
        return row["booking_id"], round(self.bench.hours(row["starts_at"]), 6), before

    def _in(self, *states: str) -> list[told.Job]:
        return [job for job in self.model.jobs.values() if job.status in states]

    def _any_lease(self, pick: int) -> tuple[told.Lease, Claimed]:
        """Return a lease, one that is still held twice as often: ends that count matter more."""
        leases = self.leases + 2 * [pair for pair in self.leases if self.model.is_ours(pair[0])]
        return leases[pick % len(leases)]

    @staticmethod
    def _pick(items: list[Any], pick: int) -> Any:
        return items[pick % len(items)] if items else None

    @invariant()
    def jobs_agree(self) -> None:
        rows = {row["id"]: tuple(row.values())[1:] for row in self.bench.fetch(draws.JOBS)}
        assert rows == {
            job.id: (job.queue, job.status, job.attempts, job.crashes, job.fence, job.key, job.priority)
            for job in self.model.jobs.values()
        }
        keys = [row[5] for row in rows.values() if row[5] is not None]
        assert len(keys) == len(set(keys))

    @invariant()
    def reminders_agree(self) -> None:
        rows = {self._key(row): (row["status"], _known(row["reason"])) for row in self.bench.fetch(draws.REMINDERS)}
        assert rows == {key: (held.status, _known(held.reason)) for key, held in self.model.reminders.items()}

    @invariant()
    def what_was_sent_agrees(self) -> None:
        assert self.bench.far.sent == self.model.sent

    @invariant()
    def bookings_agree(self) -> None:
        rows = {row["id"]: row["status"] == "confirmed" for row in self.bench.fetch(draws.BOOKINGS)}
        assert rows == {name: booking.is_confirmed for name, booking in self.model.bookings.items()}


def _known(reason: str | None) -> str | None:
    """Return the reasons that decide anything; the others are words for people."""
    return reason if reason in ("moved", "cancelled", "started", "superseded", "cancelled by hand", "sending") else None
