"""What the doctor says about one thing: how it is, and what to do about it.

ok    right            note  right, and worth knowing
warn  works, but ...   fail  does not work: exit code 1
"""

from dataclasses import asdict, dataclass
from typing import Literal

Level = Literal["ok", "note", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report; *advice* is what to do, "" when there is nothing to do."""

    check: str
    level: Level
    says: str
    advice: str = ""

    def as_json(self) -> dict[str, str]:
        """Return the finding as JSON's own types."""
        return asdict(self)
