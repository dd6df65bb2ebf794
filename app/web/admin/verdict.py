"""All is well, or what is not: one line for the person who looks, made of what was found.

survey, rhythm, last tick, reminders, channels --judge--> tone, headline, points (each with the page that helps)
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.jobs.browse import COUNT_CAP, Survey
from app.web.admin.formats import spell_seconds
from app.web.admin.history import Rhythm
from app.web.admin.speech import Speech

SILENT_SECONDS = 3600.0
SILENT_TIMES = 4
LATE_SECONDS = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Troubles:
    """What the reminders and the channels say; counts stop at 1,001."""

    uncertain: int
    failed: int
    missed: int
    suspended: list[str]


@dataclass(frozen=True, slots=True)
class Point:
    """One thing to know; *tone* is bad or warn, *path* the page that tells more."""

    tone: str
    text: str
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state of the service in one line; *tone* is good, warn, bad or none."""

    tone: str
    headline: str
    points: list[Point]


def judge(
    survey: Survey, rhythm: Rhythm, last: Mapping[str, Any] | None, troubles: Troubles, speech: Speech
) -> Verdict:
    """Return the verdict: the worst point sets its tone."""
    points = [
        *_of_the_schedule(survey, rhythm, speech),
        *_of_the_jobs(survey, speech),
        *_of_the_reminders(troubles, speech),
        *_of_the_last_tick(last, speech),
    ]
    if last is None and rhythm.ticks == 0:
        return Verdict("none", speech.say("No tick has come yet"), points)
    points.sort(key=lambda point: point.tone != "bad")
    tones = {point.tone for point in points}
    if "bad" in tones:
        number = sum(point.tone == "bad" for point in points)
        return Verdict("bad", speech.count(number, "{n} thing needs you", "{n} things need you"), points)
    if "warn" in tones:
        return Verdict("warn", speech.say("All runs, with a remark"), points)
    return Verdict("good", speech.say("All is well"), points)


def _of_the_schedule(survey: Survey, rhythm: Rhythm, speech: Speech) -> Iterator[Point]:
    gap = survey.tick_gap_seconds
    if gap is not None and gap > max(SILENT_SECONDS, SILENT_TIMES * (rhythm.usual_seconds or 0)):
        text = speech.say("No tick for {time}: is the scheduler running?", time=spell_seconds(gap, speech))
        yield Point("bad", text, "/admin/schedule")
    late = survey.oldest_due_age_seconds
    if late is not None and late > LATE_SECONDS:
        text = speech.say("The oldest due job has waited for {time}", time=spell_seconds(late, speech))
        yield Point("warn", text, "/admin/jobs?status=ready")


def _of_the_jobs(survey: Survey, speech: Speech) -> Iterator[Point]:
    if survey.dead:
        number = f"{COUNT_CAP:,}+" if survey.dead >= COUNT_CAP else f"{survey.dead:,}"
        one, many = "{number} dead job", "{number} dead jobs"
        yield Point("bad", speech.say(one if survey.dead == 1 else many, number=number), "/admin/jobs?status=dead")
    for kind in survey.unknown_kinds:
        yield Point("bad", speech.say("No build here knows the kind {kind}", kind=kind), "/admin/jobs?status=ready")
    for queue in survey.unserved_queues:
        yield Point("warn", speech.say("Nobody here serves the queue {queue}", queue=queue), "/admin/jobs?status=ready")


def _of_the_reminders(troubles: Troubles, speech: Speech) -> Iterator[Point]:
    for number, one, many, path in (
        (troubles.uncertain, "{n} reminder may have been sent", "{n} reminders may have been sent", "uncertain"),
        (troubles.failed, "{n} reminder failed", "{n} reminders failed", "failed"),
        (troubles.missed, "{n} booking started unreminded", "{n} bookings started unreminded", "skipped"),
    ):
        if number:
            yield Point("bad", speech.count(number, one, many), f"/admin/reminders/{path}")
    for name in troubles.suspended:
        yield Point("bad", speech.say("The channel {name} is suspended", name=name), "/admin/channels")


def _of_the_last_tick(last: Mapping[str, Any] | None, speech: Speech) -> Iterator[Point]:
    if last is None:
        return
    for error in last.get("errors") or ():
        text = speech.say("The last tick's section {section} failed", section=error.get("section", "?"))
        yield Point("bad", text, f"/admin/ticks/{last.get('tick_id')}")
    if "late" in (last.get("warnings") or ()):
        yield Point("warn", speech.say("The last tick came late"), "/admin/schedule")
