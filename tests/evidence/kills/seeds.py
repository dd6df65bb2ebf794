"""Where chance comes from: one number for a run, told when it fails and taken back through EVIDENCE_SEED."""

import os
import random
import secrets


class Chance(random.Random):
    """A generator that knows its *seed*; processes and servers have clocks of their own, so it repeats choices only."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.seed_used = seed

    def __repr__(self) -> str:
        return f"EVIDENCE_SEED={self.seed_used}"


def draw() -> Chance:
    """Return the generator of this run, fresh unless EVIDENCE_SEED names its seed."""
    return Chance(int(os.environ.get("EVIDENCE_SEED") or secrets.randbits(32)))
