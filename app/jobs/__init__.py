"""The queue: one table, one way in, one way through, three ways out.

enqueue -> queue.claim -> runner (perform -> judge -> settle) -> done | ready again | dead
"""

from app.jobs.enqueue import Enqueued, NewJob, enqueue, enqueue_many
from app.jobs.job import Job, Kind, Permanent, RetryAfter, Snooze
from app.jobs.retry import Exponential, Steps

__all__ = [
    "Enqueued",
    "Exponential",
    "Job",
    "Kind",
    "NewJob",
    "Permanent",
    "RetryAfter",
    "Snooze",
    "Steps",
    "enqueue",
    "enqueue_many",
]
