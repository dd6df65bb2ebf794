"""How much of the machine others used while we measured: a figure without it says little."""

import contextlib
import os
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.server import TICKS, Server

STEAL = 7
IDLE = (3, 4)  # idle, iowait


@dataclass
class Watch:
    """One stretch of time; *used* is the processor seconds of what was measured in it."""

    used: float = 0.0


@dataclass
class Noise:
    """Cores used by others, and taken by the hypervisor, in each stretch."""

    foreign: list[float] = field(default_factory=list)
    stolen: list[float] = field(default_factory=list)

    @contextlib.contextmanager
    def watch(self, _server: Server) -> Iterator[Watch]:
        """Note what others used while the block ran."""
        watch, before, began, own = Watch(), _cpu(), time.monotonic(), time.process_time()
        yield watch
        seconds, after = time.monotonic() - began, _cpu()
        spent = [b - a for a, b in zip(before, after, strict=True)]
        busy = sum(spent) - sum(spent[place] for place in IDLE) - spent[STEAL]
        mine = watch.used + time.process_time() - own
        self.foreign.append(max(0.0, busy - mine) / seconds)
        self.stolen.append(spent[STEAL] / seconds)

    def sentences(self) -> list[str]:
        """Say how noisy the run was."""
        if not self.foreign:
            return []
        text = (
            f"Noise over {len(self.foreign)} drains on {os.cpu_count()} cores: others used "
            f"{statistics.median(self.foreign):.2f} cores at the median (p90 {_p90(self.foreign):.2f}), "
            f"the hypervisor took {statistics.median(self.stolen):.2f} (p90 {_p90(self.stolen):.2f})."
        )
        return [text]


def _p90(values: list[float]) -> float:
    return sorted(values)[int(0.9 * (len(values) - 1))]


def _cpu() -> list[float]:
    first = Path("/proc/stat").read_text().splitlines()[0]
    return [int(word) / TICKS for word in first.split()[1:9]]
