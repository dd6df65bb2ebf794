"""The dead-man's switch: whoever waits for this call notices when it stays away.

    tick begins --start ping--> beside the tick        tick ends --success | fail ping, with counts--> before the answer

    Healthchecks, and what is made like it   POST URL/start, URL, URL/fail, all with ?rid=
    Better Stack                             POST URL, URL/fail; it knows no start
    Cronitor                                 GET URL?state=run|complete|fail&series=&metric=

Success means that the machinery worked, however the jobs ended: alerts tell of those. Each ping has two seconds and
what is left of the tick; one that fails is a line in the log and nothing else.
"""

import asyncio
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

from app.channels.http import exchange
from app.config import Settings
from app.log import get_logger
from app.summary import Summary

PING_SECONDS = 2.0
LEAST_SECONDS = 0.05
BETTER_STACK = re.compile(r"/api/v\d+/heartbeat/[^/]+/?")
CRONITOR = re.compile(r"/p/[^/]+/[^/]+/?")
CRONITOR_HOST = "cronitor.link"
CRONITOR_STATES = {"start": "run", "success": "complete", "fail": "fail"}

log = get_logger()


class Event(StrEnum):
    """What a ping says."""

    START = "start"
    SUCCESS = "success"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Ping:
    """One request: *body* None is a GET."""

    url: str
    body: bytes | None


def make_ping(url: str, event: Event, run_id: str, counts: Mapping[str, Any]) -> Ping | None:
    """Return the request that tells *event* in the form of the service behind *url*, None when it has none for it."""
    parts = urlsplit(url)
    body = json.dumps(dict(counts)).encode()
    if CRONITOR.fullmatch(parts.path) or parts.hostname == CRONITOR_HOST:
        values = [("state", CRONITOR_STATES[event]), ("series", run_id)]
        if event != Event.START:
            values += [("metric", f"count:{counts['done']}"), ("metric", f"error_count:{counts['dead']}")]
            values += [("message", ", ".join(f"{name} {number}" for name, number in counts.items()))]
        return Ping(_extended(parts, "", values), None)
    suffix = "" if event == Event.SUCCESS else f"/{event.value}"
    if BETTER_STACK.fullmatch(parts.path):
        return None if event == Event.START else Ping(_extended(parts, suffix, []), body)
    return Ping(_extended(parts, suffix, [("rid", run_id)]), body)


def _extended(parts: Any, suffix: str, values: list[tuple[str, str]]) -> str:
    query = "&".join(text for text in (parts.query, urlencode(values)) if text)
    address: str = urlunsplit(parts._replace(path=parts.path.rstrip("/") + suffix, query=query, fragment=""))
    return address


def counts_of(summary: Summary) -> dict[str, Any]:
    """Return what a ping tells of *summary*: small numbers, nothing of a job and nobody's name."""
    backlog = summary.as_dict()["backlog"]
    return {
        "done": summary.jobs["done"] + summary.reminders["sent"],
        "retried": summary.jobs["retried"] + summary.reminders["retried"],
        "dead": summary.jobs["dead"] + summary.reminders["failed"],
        "due": (backlog["due"] or 0) + (backlog["reminders_due"] or 0),
        "oldest_due_age_seconds": backlog["oldest_due_age_seconds"] or 0,
        "errors": len(summary.errors),
        "duration_ms": summary.duration_ms,
    }


@dataclass(eq=False)
class Heartbeat:
    """The pings of one tick, *run_id*; without HEARTBEAT_URL it does nothing. *until* is in monotonic seconds."""

    settings: Settings
    summary: Summary
    until: float | None
    _start: asyncio.Task[None] | None = field(default=None, repr=False)

    def start(self) -> None:
        """Tell that the tick begins, beside it."""
        if self.settings.heartbeat_url is not None:
            self._start = asyncio.create_task(self._send(Event.START))

    def stop(self) -> None:
        """Give up the first ping."""
        if self._start is not None:
            self._start.cancel()

    async def finish(self, *, has_failed: bool = False) -> None:
        """Tell how the tick ended: failed when it raised, or when a section did. Never raises."""
        if self._start is None:
            return
        # A start that is still on its way must not come after the end.
        await asyncio.wait({self._start}, timeout=self._seconds() / 2)
        self.stop()
        await self.pulse(has_failed=has_failed)

    async def pulse(self, *, has_failed: bool = False) -> None:
        """Tell that the machinery works, or does not, without a start before it: a worker's form. Never raises."""
        if self.settings.heartbeat_url is not None:
            await self._send(Event.FAIL if has_failed or self.summary.errors else Event.SUCCESS)

    def _seconds(self) -> float:
        if self.until is None:
            return PING_SECONDS
        return max(LEAST_SECONDS, min(PING_SECONDS, self.until - time.monotonic()))

    async def _send(self, event: Event) -> None:
        assert self.settings.heartbeat_url is not None  # noqa: S101 - start has looked
        url = self.settings.heartbeat_url.get_secret_value()
        ping = make_ping(url, event, self.summary.tick_id, counts_of(self.summary))
        if ping is None:
            return
        method, headers = ("GET", {}) if ping.body is None else ("POST", {"Content-Type": "application/json"})
        try:
            reply = await exchange(method, ping.url, headers=headers, body=ping.body, seconds=self._seconds())
            if not reply.is_success:
                log.warning("heartbeat.refused", event_told=event.value, status=reply.status)
        except Exception as error:  # noqa: BLE001 - a ping never fails a tick, whatever the address makes httpx raise
            log.warning("heartbeat.failed", event_told=event.value, error=type(error).__name__)
