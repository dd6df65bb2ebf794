"""How much of the machine others used while we measured: a figure without it says little."""

import contextlib
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.server import TICKS

STEAL = 7
IDLE = (3, 4)  # idle, iowait


@dataclass
class Watch:
    """One stretch of time; *used* is the processor seconds of what was measured in it, the others are in cores."""

    used: float = 0.0
    foreign: float = 0.0
    stolen: float = 0.0


@contextlib.contextmanager
def watching() -> Iterator[Watch]:
    """Note what others used while the block ran."""
    watch, before, began, own = Watch(), _cpu(), time.monotonic(), time.process_time()
    yield watch
    seconds, after = time.monotonic() - began, _cpu()
    spent = [b - a for a, b in zip(before, after, strict=True)]
    busy = sum(spent) - sum(spent[place] for place in IDLE) - spent[STEAL]
    mine = watch.used + time.process_time() - own
    watch.foreign, watch.stolen = max(0.0, busy - mine) / seconds, spent[STEAL] / seconds


def noise_sentence(drains: Sequence[dict[str, Any]]) -> str:
    """Say how noisy *drains* were, that hold what others used (`foreign`) and what the hypervisor took (`stolen`)."""
    foreign = [found["foreign"] for found in drains if "foreign" in found]
    stolen = [found["stolen"] for found in drains if "stolen" in found]
    if not foreign:
        return ""
    return (
        f"Noise over {len(foreign)} drains on {os.cpu_count()} cores: others used {statistics.median(foreign):.2f} "
        f"cores at the median (p90 {_p90(foreign):.2f}), the hypervisor took {statistics.median(stolen):.2f} "
        f"(p90 {_p90(stolen):.2f})."
    )


def _p90(values: list[float]) -> float:
    return sorted(values)[int(0.9 * (len(values) - 1))]


def _cpu() -> list[float]:
    first = Path("/proc/stat").read_text().splitlines()[0]
    return [int(word) / TICKS for word in first.split()[1:9]]
