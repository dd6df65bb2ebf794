"""Clocks that lie: libfaketime before a program's own clock, or before a whole PostgreSQL's, moved while it runs.

Only the time of day is faked. Monotonic clocks go on, as they do when NTP or a person sets a real clock.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.servers import Server, start_server

PLACES = "/usr/lib"
LIBRARY = "*/faketime/libfaketimeMT.so.1"


def library() -> str:
    """Return the path of libfaketime; `.ci/run` installs the package."""
    found = next(Path(PLACES).glob(LIBRARY), None)
    if found is None:
        raise RuntimeError("this test needs the Debian package faketime")
    return str(found)


def lying(offset: str) -> dict[str, str]:
    """Return the environment of a program whose clock is *offset* away, as `+10m` or `-400d`."""
    return {"LD_PRELOAD": library(), "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


@dataclass(frozen=True)
class Clock:
    """The time of day of one running server."""

    server: Server
    _file: Path

    def set_to(self, instant: datetime) -> None:
        """Make it *instant* in the server, now; time goes on from there."""
        self.move(instant - datetime.now(UTC))

    def move(self, distance: timedelta) -> None:
        """Set the server's clock to *distance* from the real one."""
        self._file.write_text(f"{distance.total_seconds():+.6f}")


@contextmanager
def clock_server(kind: str, folder: Path) -> Iterator[Clock]:
    """Run a PostgreSQL of *kind* whose clock can be set, with its data below *folder*."""
    file = folder / "clock"
    file.write_text("+0")
    faked = {"LD_PRELOAD": library(), "FAKETIME_TIMESTAMP_FILE": str(file), "FAKETIME_NO_CACHE": "1"}
    faked["FAKETIME_DONT_FAKE_MONOTONIC"] = "1"
    before = dict(os.environ)
    os.environ.update(faked)  # the server inherits it; we ourselves are long running and are not touched
    server = start_server(kind, folder)
    try:
        started = server.__enter__()
    finally:
        for name in faked:
            del os.environ[name]
        os.environ.update({name: before[name] for name in faked if name in before})
    try:
        yield Clock(started, file)
    finally:
        server.__exit__(None, None, None)
