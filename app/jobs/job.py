"""What a handler sees and says: the job, the kind, and the ways to end a run.

return          done
Snooze          again later, no attempt spent
RetryAfter      failed, and the far side named the delay
Permanent       dead now
anything else   failed: the kind's retry policy decides
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any
from uuid import UUID, uuid5

from app.db import Connection
from app.jobs.retry import Exponential, Policy
from app.jobs.services import Services

KEY_NAMESPACE = UUID("3e0b1c7a-5c1f-5a57-9d0e-6f2b8c4d1a90")
TIMEOUT_SECONDS = 10.0


class Snooze(Exception):
    """Run again after *delay* seconds; no attempt is spent."""

    def __init__(self, delay: float, reason: str = "") -> None:
        self.delay = delay
        self.reason = reason
        super().__init__(reason or "snoozed")


class RetryAfter(Exception):
    """Count this attempt as failed and run again after *delay* seconds, as the far side asked."""

    def __init__(self, delay: float, reason: str = "") -> None:
        self.delay = delay
        self.reason = reason
        super().__init__(reason or "the far side asked to wait")


class Permanent(Exception):
    """Bury the job now: no later attempt could succeed."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


Completing = Callable[["Job"], AbstractAsyncContextManager[Connection]]


@dataclass(slots=True)
class Job:
    """One claimed row, as its handler sees it.

    *payload* is an instance of the kind's payload class, or a dict where the kind names none. *attempts* counts this
    run. *note* may be set by a handler that ends well in one of several ways; the summary counts notes.
    """

    id: int
    kind: str
    queue: str
    payload: Any
    attempts: int
    max_attempts: int
    crashes: int
    fence: int
    created_at: float
    services: Services
    note: str | None = None
    is_completed: bool = False
    _completing: Completing | None = field(default=None, repr=False)

    @property
    def idempotency_key(self) -> str:
        """A key that is the same at every attempt of this job, and of no other job: 36 ASCII characters."""
        return self.key_for("")

    def key_for(self, step: str) -> str:
        """Return the stable key of one *step* of a job that does several things outside this database."""
        return str(uuid5(KEY_NAMESPACE, f"{self.id}:{self.created_at}:{step}"))

    @asynccontextmanager
    async def completing(self) -> AsyncIterator[Connection]:
        """Open a transaction that commits the handler's effects together with `done`: exactly once, or not at all.

        Raise LeaseLost, with everything rolled back, when another tick owns the job by then.
        """
        if self._completing is None:
            raise RuntimeError("only a running job can complete")
        async with self._completing(self) as connection:
            yield connection
        self.is_completed = True


Handler = Callable[[Job], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class Kind:
    """How one sort of job runs: its *handler*, *payload* class, *timeout* in seconds and *retry* policy.

    *is_async* says whether the handler is a coroutine function; a plain one runs in a thread.
    """

    handler: Handler
    payload: Any = None
    timeout: float = TIMEOUT_SECONDS
    retry: Policy = field(default_factory=Exponential)
    is_async: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_async", iscoroutinefunction(self.handler))
        if not callable(self.handler):
            raise TypeError("a Kind's handler must be a function")
        if isgeneratorfunction(self.handler) or isasyncgenfunction(self.handler):
            raise TypeError("a Kind's handler must not yield: calling it would run nothing")
        if not 0 < self.timeout < float("inf"):
            raise ValueError("a Kind's timeout must be more than 0 seconds")
