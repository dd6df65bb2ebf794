"""What every room of one process shares, made once at start-up and passed down."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from app.config import Settings
from app.db import Database

if TYPE_CHECKING:
    from app.jobs.job import Kind


@dataclass(frozen=True, slots=True)
class Services:
    """Settings, the pool, the kinds this build knows, and the word that the process is stopping.

    *suspects* is held while a job that has crashed before runs: one at a time in a process. *shared* is where a kind
    keeps, by a name of its own, what its handlers share.
    """

    settings: Settings
    database: Database
    stopping: asyncio.Event
    kinds: Mapping[str, "Kind"]
    suspects: asyncio.Lock = field(default_factory=asyncio.Lock)
    shared: dict[str, Any] = field(default_factory=dict)
