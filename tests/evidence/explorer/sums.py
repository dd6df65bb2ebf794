"""What all ticks counted, against what happened to the rows: the summary's words for each step of a job."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tests.evidence.explorer.found import REMINDERS, Found


def sums_are_right(found: Found) -> list[str]:
    """What all ticks counted adds up to what happened; not asked when a tick was killed or others moved rows."""
    world = found.world
    problems = [f"a tick reported {summary.errors}" for summary in world.summaries if summary.errors]
    if found.was_killed or any(actor.name.startswith(("worker", "sweeper")) for actor in world.scheduler.actors):
        return problems
    pairs = _pairs(found)
    return problems + [f"{name}: ticks counted {a}, rows say {b}" for name, (a, b) in pairs.items() if a != b]


def _pairs(found: Found) -> dict[str, tuple[int, int]]:
    summaries = found.world.summaries
    jobs, reminders = _sum(summary.jobs for summary in summaries), _sum(summary.reminders for summary in summaries)
    rescued = sum(summary.rescued for summary in summaries)
    crashed = sum(summary.crashed for summary in summaries)
    happened, happened_reminders = _happened(found, is_reminder=False), _happened(found, is_reminder=True)
    given_back = jobs["snoozed"] + jobs["released"]
    pairs = {
        "claimed": (jobs["claimed"], happened["claimed"]),
        "done": (jobs["done"], happened["done"]),
        "retried": (jobs["retried"], happened["retried"]),
        "given back": (given_back, happened["given back"]),
        "dead": (jobs["dead"], happened["dead"] + happened["crashed"]),
        "expired": (jobs["expired"], happened["expired"]),
        "reminders claimed": (reminders["claimed"], happened_reminders["claimed"]),
        "reminders retried": (reminders["retried"], happened_reminders["retried"]),
        "reminders given back": (reminders["released"], happened_reminders["given back"]),
        "planned": (reminders["planned"], happened_reminders["put in"]),
        "rescued": (rescued, happened["rescued"] + happened_reminders["rescued"]),
        "crashed": (crashed, happened["crashed"] + happened_reminders["crashed"]),
        "settled": (
            jobs["claimed"],
            jobs["done"] + jobs["retried"] + given_back + jobs["dead"] - happened["crashed"] + jobs["lost"],
        ),
    }
    if not found.world.overruns:
        pairs["sent"] = (reminders["sent"], sum(note["status"] == "sent" for note in found.reminder_notes))
    return pairs


def _sum(counts: Iterable[Counter[str]]) -> Counter[str]:
    return sum(counts, Counter[str]())


def _happened(found: Found, *, is_reminder: bool) -> Counter[str]:
    """Count the steps of the rows in the summary's words."""
    count: Counter[str] = Counter()
    for note in found.job_notes:
        if (note["queue"] == REMINDERS) != is_reminder or note["status"] is None:
            continue
        count[_word(note)] += 1
    return count


def _word(note: Any) -> str:
    step = (note["old_status"], note["status"])
    if step == ("running", "ready"):
        if note["crashes"] > note["old_crashes"]:
            return "rescued"
        return "given back" if note["attempts"] < note["old_attempts"] else "retried"
    if step == ("running", "dead"):
        return "crashed" if note["crashes"] > note["old_crashes"] else "dead"
    words = {(None, "ready"): "put in", ("ready", "running"): "claimed", ("running", "done"): "done"}
    return words.get(step, "expired" if step == ("ready", "expired") else "other")
