"""What must be true after every order, whatever the order was.

rows    each job in exactly one terminal state, by legal steps only    fence and attempts rise with each claim
effects inside a transaction once, outside at most once for each claim no message twice without a crash
sums    what all ticks counted is what happened to the rows            what is owed was sent
"""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from tests.evidence.explorer.found import Found, look
from tests.evidence.explorer.sums import sums_are_right
from tests.evidence.explorer.world import Sent, World

TERMINAL = ("done", "dead", "cancelled", "expired")


async def check(world: World) -> list[str]:
    """Return every way in which the world after this order is not as promised."""
    found = await look(world)
    checks = (steps_are_legal, jobs_end, runs_are_claimed, effects_are_one, keys_are_one, leases_are_ours)
    more = (sends_are_one, sends_are_owed, reminders_end, what_is_owed_was_sent, sums_are_right)
    return [problem for step in (*checks, *more) for problem in step(found)]


def steps_are_legal(found: Found) -> list[str]:
    """Each note is a step that the state machine knows, and starts where the last one of its row ended."""
    problems: list[str] = []
    at: dict[int, str | None] = {}
    for note in found.job_notes:
        before = at.get(note["id"])
        if before is not None and before != note["old_status"]:
            problems.append(f"job {note['id']}: a step from {note['old_status']} where {before} stood")
        at[note["id"]] = note["status"]
        if not is_legal(note):
            problems.append(f"job {note['id']}: an illegal step {dict(note)}")
        elif note["status"] is not None and note["attempts"] > note["max_attempts"] + note["crashes"]:
            problems.append(f"job {note['id']}: {note['attempts']} attempts of {note['max_attempts']}")
    return problems


# What fence, attempts and crashes gain by a step.
GAINS = {
    ("ready", "running"): ((1, 1, 0),),
    ("running", "running"): ((0, 0, 0),),
    ("running", "done"): ((0, 0, 0),),
    ("running", "ready"): ((0, 0, 0), (0, -1, 0), (0, 0, 1)),
    ("running", "dead"): ((0, 0, 0), (0, 0, 1)),
    ("ready", "ready"): ((0, 0, 0),),
    ("ready", "expired"): ((0, 0, 0),),
    ("ready", "cancelled"): ((0, 0, 0),),
}


def is_legal(note: Any) -> bool:
    """Say whether a job may take this step; one of fence 0 was put as dead by its scenario."""
    step = (note["old_status"], note["status"])
    if step == (None, "ready"):
        return True
    if note["status"] is None:
        return note["old_status"] in ("done", "cancelled", "expired")
    if step == ("dead", "ready"):
        return (note["fence"], note["attempts"], note["crashes"]) == (note["old_fence"], 0, 0)
    gained = tuple(note[name] - note[f"old_{name}"] for name in ("fence", "attempts", "crashes"))
    return gained in GAINS.get(step, ()) or (step == ("ready", "dead") and note["fence"] == 0)


def jobs_end(found: Found) -> list[str]:
    """Every job that was put in is there once, in a terminal state; an operator's world may have pruned some."""
    left = [f"job {row['id']} is {row['status']}" for row in found.jobs if row["status"] not in TERMINAL]
    noted = {note["id"] for note in found.job_notes if note["old_status"] is None}
    gone = noted - {row["id"] for row in found.jobs}
    pruned = {note["id"] for note in found.job_notes if note["status"] is None}
    return left + [f"job {job_id} is gone" for job_id in (gone | (found.world.enqueued - noted)) - pruned]


def runs_are_claimed(found: Found) -> list[str]:
    """No handler runs twice under one fence, and none under a claim that was not committed."""
    claims = {(n["id"], n["fence"]) for n in found.job_notes if (n["old_status"], n["status"]) == ("ready", "running")}
    counts = Counter(found.world.starts)
    twice = [f"job {lease} was started {count} times" for lease, count in counts.items() if count > 1]
    return twice + [f"job {lease} ran without a claim" for lease in counts if lease not in claims]


def effects_are_one(found: Found) -> list[str]:
    """A job that is done has had its effect once, every other one never; a requeued job may have had it before."""
    problems = []
    for row in found.jobs:
        if row["kind"] == "effect":
            expected = 1 if row["status"] == "done" else 0
            if found.effects.get(row["id"], 0) != expected:
                problems.append(f"job {row['id']} is {row['status']} with {found.effects.get(row['id'], 0)} effects")
    return problems


def keys_are_one(found: Found) -> list[str]:
    """One key is one row, and everybody was told that row."""
    problems = []
    rows: dict[str, list[int]] = {}
    for row in found.jobs:
        if row["dedupe_key"] is not None:
            rows.setdefault(row["dedupe_key"], []).append(row["id"])
    told: dict[str, set[int]] = {}
    for key, job_id in found.world.keyed:
        told.setdefault(key, set()).add(job_id)
    problems += [f"key {key} has rows {ids}" for key, ids in rows.items() if len(ids) != 1]
    problems += [
        f"key {key}: told {ids}, is {rows.get(key)}" for key, ids in told.items() if list(ids) != rows.get(key)
    ]
    return problems


def leases_are_ours(found: Found) -> list[str]:
    """A settlement is won once under one fence; a heartbeat never says `ours` after the next claim was seen."""
    world = found.world
    problems = [f"job {lease} was settled {n} times" for lease, n in Counter(world.wins).items() if n > 1]
    for asked_at, job_id, fence in world.heard:
        newer = [seen_at for seen_at, other, later in world.claims if other == job_id and later > fence]
        if any(seen_at <= asked_at for seen_at in newer):
            problems.append(f"job {job_id}: the heartbeat kept fence {fence} alive after a later claim")
    return problems


Key = tuple[str, datetime, timedelta]


def _reminder(row: Any) -> Key:
    return row["booking_id"], row["starts_at"], row["remind_before"]


def sends_are_one(found: Found) -> list[str]:
    """No message goes out twice; a crash while it was on its way allows one more, unless the reminder is to be held."""
    world = found.world
    whose = {note["idempotency_key"]: _reminder(note) for note in found.reminder_notes}
    jobs: dict[Key, set[int]] = {}
    for note in found.reminder_notes:
        jobs.setdefault(_reminder(note), set()).add(note["job_id"])
    counts: Counter[Key] = Counter(whose[sent.key] for sent in world.sent)
    problems = []
    for key, sends in counts.items():
        may_repeat = world.ambiguous == "retry"
        crashes = sum(world.overruns[job_id] for job_id in jobs[key]) + found.was_killed + world.maybes
        if sends > 1 + (crashes if may_repeat else 0):
            problems.append(f"reminder {key[0]} {key[2]} went out {sends} times ({world.ambiguous})")
    if len(world.offsets) == 1 and not (found.was_killed or world.overruns or world.maybes):
        starts = Counter((booking_id, starts_at) for booking_id, starts_at, _ in counts.elements())
        problems += [
            f"{booking_id} was reminded {n} times of one start" for (booking_id, _), n in starts.items() if n > 1
        ]
    return problems


def sends_are_owed(found: Found) -> list[str]:
    """What was sent was owed when it was frozen: its booking stood confirmed at that start."""
    whose = {note["idempotency_key"]: _reminder(note) for note in found.reminder_notes}
    problems = []
    for sent in found.world.sent:
        booking_id, starts_at, _ = whose[sent.key]
        frozen_at = _frozen_at(found.world, sent, {booking_id, starts_at.isoformat()})
        if frozen_at is None:
            continue  # by a tick after the order, with nobody else at work
        stood = _stood(found.world, booking_id, frozen_at)
        if stood != ("confirmed", starts_at):
            problems.append(f"{booking_id} was reminded of {starts_at} although it stood {stood}")
    return problems


def _frozen_at(world: World, sent: Sent, named: set[str]) -> int | None:
    if sent.actor is None:
        return None
    mine = [it.index for it in world.stage.stock.freezes if it.actor is sent.actor and it.named >= named]
    return max((index for index in mine if index < sent.at), default=-1)


def _stood(world: World, booking_id: str, step: int) -> tuple[str, datetime] | None:
    held = [(status, at) for since, name, status, at in world.booked if name == booking_id and since <= step]
    return held[-1] if held else None


def reminders_end(found: Found) -> list[str]:
    """No reminder is left planned; `sent` means that it went out, and its job's end agrees with its own."""
    jobs = {row["id"]: row["status"] for row in found.jobs}
    sent = {sent.key for sent in found.world.sent}
    ends = {
        "done": ("sent", "skipped"),
        "dead": ("failed", "uncertain", "sent", "skipped"),
        "cancelled": ("skipped", "sent", "failed", "uncertain"),
    }
    problems = []
    for row in found.reminders:
        label = f"reminder {row['booking_id']} {row['remind_before']} is {row['status']} ({row['reason']})"
        if row["status"] == "planned":
            problems.append(label)
        if row["status"] == "sent" and row["idempotency_key"] not in sent:
            problems.append(f"{label} but never went out")
        job = jobs.get(row["job_id"])
        if job is not None and row["status"] not in ends.get(job, ("skipped",)):
            problems.append(f"{label} and its job is {job}")
    return problems


def what_is_owed_was_sent(found: Found) -> list[str]:
    """A booking that stands confirmed inside the window was reminded, unless its job died or a person stopped it."""
    jobs = {row["id"]: row["status"] for row in found.jobs}
    window = found.world.now + timedelta(hours=24)
    problems = []
    for booking in found.bookings:
        if booking["status"] != "confirmed" or booking["starts_at"] > window:
            continue
        rows = [
            r for r in found.reminders if (r["booking_id"], r["starts_at"]) == (booking["id"], booking["starts_at"])
        ]
        was_stopped = any(jobs.get(row["job_id"]) in ("dead", "cancelled") for row in rows)
        if not was_stopped and not any(row["status"] == "sent" for row in rows):
            states = [(row["status"], row["reason"]) for row in rows]
            problems.append(f"{booking['id']} stands confirmed and was not reminded: {states}")
    return problems
