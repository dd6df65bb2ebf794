"""When a failed job runs again: pure functions of the number of failures.

    Exponential   30 s x 2^(n-1), capped at 1 h, times a random 0.5 to 1.0
    Steps         the delays that were named; after the last one the job is dead
    Herd          beside either: jobs that failed in a herd come back over a minute more

The cap is applied to the exponent before the power is taken, so that no attempt number overflows. Jitter stays at the
cap: jobs that failed together would otherwise come back together for ever.
"""

import random
from dataclasses import dataclass
from typing import Protocol

BASE_SECONDS = 30.0
CAP_SECONDS = 3600.0
LARGEST_EXPONENT = 32
HERD_FROM = 3
HERD_SECONDS = 60.0
HERD_PAUSE_SECONDS = 5.0


class Policy(Protocol):
    """What a kind's retry policy answers."""

    def delay(self, failures: int) -> float | None:
        """Return the seconds until the next run after *failures* failed runs, or None: no more."""


@dataclass(frozen=True, slots=True)
class Exponential:
    """Double the wait at each failure, up to a cap, with jitter: seconds in, seconds out."""

    base: float = BASE_SECONDS
    cap: float = CAP_SECONDS

    def __post_init__(self) -> None:
        if not 0 < self.base <= self.cap < float("inf"):
            raise ValueError("Exponential needs 0 < base <= cap")

    def delay(self, failures: int) -> float | None:
        """Return a wait in seconds; this policy never gives up, the row's max_attempts does."""
        exponent = min(max(failures - 1, 0), LARGEST_EXPONENT)
        longest = min(self.cap, self.base * 2.0**exponent)
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing


class Steps:
    """Wait the named seconds in turn: `Steps(60, 300, 1800)` is four attempts, then dead."""

    def __init__(self, *seconds: float) -> None:
        if not all(0 <= step < float("inf") for step in seconds):
            raise ValueError("Steps takes waits in seconds, 0 or more")
        self.seconds = seconds

    def __repr__(self) -> str:
        return f"Steps{self.seconds}"

    def delay(self, failures: int) -> float | None:
        """Return the named wait, lengthened by up to a tenth so that jobs which failed together spread out."""
        if failures > len(self.seconds):
            return None
        return self.seconds[max(failures, 1) - 1] * random.uniform(1.0, 1.1)  # noqa: S311 - spreads load


@dataclass(slots=True)
class Herd:
    """How many jobs have failed close together: the first wait's own 15 seconds are too narrow for hundreds."""

    size: int = 0
    last: float = float("-inf")

    def spread(self, now: float) -> float:
        """Return the seconds to add to the wait of a job that failed at *now* (monotonic seconds).

        Nothing for the first three failures of a run of them, up to a minute for each later one: of 500 that fail
        together, no second then holds more than one in twenty.
        """
        self.size = self.size + 1 if now - self.last <= HERD_PAUSE_SECONDS else 1
        self.last = now
        return random.uniform(0.0, HERD_SECONDS) if self.size > HERD_FROM else 0.0  # noqa: S311 - spreads load
