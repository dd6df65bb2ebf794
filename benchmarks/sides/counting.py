"""What every Python side does the same way: count handlers that ran, and say so every few milliseconds.

C <jobs run so far> <seconds since the epoch>       one line on standard output, first at the first job
"""

import asyncio
import time

REPORT_SECONDS = 0.01


class Count:
    """The jobs whose handler ran in this process."""

    def __init__(self) -> None:
        self.total = 0
        self._said = 0

    def ran(self) -> None:
        """Count one; the first is said at once."""
        self.total += 1
        if self.total == 1:
            self._say()

    async def report(self) -> None:
        """Say the count whenever it has changed, until cancelled."""
        while True:
            await asyncio.sleep(REPORT_SECONDS)
            if self.total != self._said:
                self._say()

    def _say(self) -> None:
        self._said = self.total
        print("C", self.total, time.time(), flush=True)
