"""One run of one job: perform -> judge -> (settle, elsewhere). Each hands on to the next and none looks back.

Perform knows no database, judge is a pure function. The catch-all of the whole program stands here: whatever a
handler raises, SystemExit and CancelledError included, is an ending of that job and of no other.
"""

import asyncio
import contextlib
import math
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import lru_cache
from inspect import isawaitable
from typing import Any, NamedTuple

from app.jobs.job import Job, Kind, Permanent, RetryAfter, Snooze
from app.jobs.queue import Claimed, Verdict
from app.jobs.retry import Exponential
from app.jobs.scrub import error_text, permanent_text

LONGEST_DELAY = 366 * 86_400.0

TIMED_OUT = "timeout"
STOPPED = "stop"
LEASE_LOST = "lost"


class Ending(NamedTuple):
    """What came of a run: the error it raised, if any; *cut* says why we cancelled it, if we did."""

    error: BaseException | None
    cut: str | None = None


async def perform(job: Job, kind: Kind, text: str) -> BaseException | None:
    """Decode the payload *text*, run the handler, and return what it raised, None for a good end."""
    try:
        job.payload = decode(kind, text)
        if kind.is_async:
            await kind.handler(job)  # type: ignore[misc] # an async kind has such a handler
        elif isawaitable(result := await _in_thread(kind, job)):  # a plain function may hand back a coroutine
            await result
    except BaseException as error:  # noqa: BLE001 - the one catch-all: see the module's docstring
        return error
    return None


def decode(kind: Kind, text: str) -> Any:
    """Return the payload as the kind's class, or as a dict; raise Permanent for what does not validate."""
    try:
        return _validator(kind.payload)(text)
    except (ValueError, RecursionError) as error:
        raise Permanent(f"the payload does not validate: {_where(error)}") from None


@lru_cache(maxsize=512)
def _validator(payload: Any) -> Callable[[str], Any]:
    """Return what reads JSON as *payload*: the core's own function, past a wrapper that costs as much as it."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - not before the first job needs it

    read: Callable[[str], Any] = TypeAdapter(dict[str, Any] if payload is None else payload).validator.validate_json
    return read


def _where(error: Exception) -> str:
    """Name the fields and the rules, never the values."""
    details = getattr(error, "errors", None)
    if details is None:
        return type(error).__name__
    found = details(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, item['loc'])) or 'payload'} ({item['type']})" for item in found[:5])


async def _in_thread(kind: Kind, job: Job) -> Any:
    """Return what a plain function returns in a daemon thread of its own; a cancelled wait lasts until it ends.

    A thread cannot be stopped: were its job settled before it ends, a second run could overlap the first.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Any] = loop.create_future()
    context = copy_context()

    def report(result: Any, error: BaseException | None) -> None:
        if not ended.done():
            ended.set_result(result) if error is None else ended.set_exception(_Wrapped(error))

    def run() -> None:
        result, error = None, None
        try:
            result = context.run(kind.handler, job)
        except BaseException as raised:  # noqa: BLE001 - handed to the loop, which judges it
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop has closed: the process is on its way out
            loop.call_soon_threadsafe(report, result, error)

    threading.Thread(target=run, name=f"job-{job.id}", daemon=True).start()
    return await _until_ended(ended)


class _Wrapped(Exception):
    def __init__(self, error: BaseException) -> None:
        self.error = error
        super().__init__()


async def _until_ended(ended: asyncio.Future[Any]) -> Any:
    was_cancelled = False
    while not ended.done():
        try:
            await asyncio.wait({ended})
        except asyncio.CancelledError:
            was_cancelled = True
    wrapped = ended.exception()
    if isinstance(wrapped, _Wrapped):
        raise wrapped.error
    if was_cancelled:
        raise asyncio.CancelledError
    return ended.result()


def judge(claimed: Claimed, kind: Kind, ending: Ending, secrets: tuple[str, ...] = ()) -> Verdict | None:
    """Decide how a run ends; None when the lease is lost and nothing may be written.

    A crash is no failure: *claimed.attempts* less its crashes is what the retry policy and max_attempts count.
    """
    error = ending.error
    if ending.cut == LEASE_LOST:
        return None
    if ending.cut == STOPPED and isinstance(error, asyncio.CancelledError):
        return Verdict(claimed.id, claimed.fence, "released")
    if error is None:
        return Verdict(claimed.id, claimed.fence, "done")
    if isinstance(error, Snooze) and _is_delay(getattr(error, "delay", None)):
        return Verdict(claimed.id, claimed.fence, "snoozed", float(min(error.delay, LONGEST_DELAY)))
    if isinstance(error, Permanent):
        return Verdict(claimed.id, claimed.fence, "dead", error=permanent_text(error, secrets))
    return _failed(claimed, kind, ending, secrets)


def _failed(claimed: Claimed, kind: Kind, ending: Ending, secrets: tuple[str, ...]) -> Verdict:
    error, failures = ending.error, max(claimed.attempts - claimed.crashes, 1)
    assert error is not None  # noqa: S101 - judge has dealt with good ends
    text = error_text(error, secrets)
    if ending.cut == TIMED_OUT and isinstance(error, asyncio.CancelledError):
        text = f"TimeoutError: it ran longer than {kind.timeout:g} s"
    delay = _policy_delay(kind, failures)
    if delay is None or failures >= claimed.max_attempts:
        return Verdict(claimed.id, claimed.fence, "dead", error=text)
    if isinstance(error, RetryAfter) and _is_delay(getattr(error, "delay", None)):
        delay = error.delay
    return Verdict(claimed.id, claimed.fence, "retried", float(min(delay, LONGEST_DELAY)), text)


def _policy_delay(kind: Kind, failures: int) -> float | None:
    """Ask the kind's policy; one that fails itself, or names no possible wait, is replaced by the usual one."""
    try:
        delay = kind.retry.delay(failures)
    except BaseException:  # noqa: BLE001 - a user's code, run where nothing may be raised: the job must end
        return Exponential().delay(failures)
    return delay if delay is None or _is_delay(delay) else Exponential().delay(failures)


def _is_delay(seconds: Any) -> bool:
    """Say whether *seconds* is a wait; the comparison comes first, because no int is too large for it."""
    return isinstance(seconds, int | float) and 0 <= seconds < math.inf
