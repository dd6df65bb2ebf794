"""Tests side by side, but for those that measure time: those of QUIET run while no other test of this user does.

any test    gate (for a moment) -> shared lock -> runs
quiet test  gate (held)         -> exclusive lock -> runs       the gate keeps later tests from overtaking it
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HELD = "DORMOUSE_TESTS_TURN"
QUIET = (
    "admin/test_speed.py",
    "benchmarks/test_flat_cost.py",
    "evidence/http/test_unauthenticated_cost.py",
    "jobs/test_hands.py",
    "tick/test_deadline.py",
    "tick/test_two_lanes.py",
    "web/test_json_bombs.py",
    "web/test_wire.py",
)


def is_quiet(path: Path) -> bool:
    """Say whether the tests of *path* measure time."""
    return any(path.match(name) for name in QUIET)


@contextmanager
def turn(*, alone: bool) -> Iterator[None]:
    """Wait for a turn to run, alone or beside others; a pytest that a test has started runs within that test's turn."""
    if HELD in os.environ:
        yield
        return
    folder = Path(tempfile.gettempdir()) / f"dormouse-tests-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    with (folder / "gate").open("w") as gate, (folder / "floor").open("w") as floor:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(floor, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        if not alone:
            fcntl.flock(gate, fcntl.LOCK_UN)
        os.environ[HELD] = "1"
        try:
            yield
        finally:
            del os.environ[HELD]
