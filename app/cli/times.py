"""Times as people type them: instants with an offset, for a bare wall time means something else elsewhere."""

import re
from datetime import datetime, timedelta

from app.errors import BadInput

UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
DELAY_MAX = timedelta(days=3660)


def read_delay(text: str) -> timedelta:
    """Read `90`, `90s`, `15m`, `24h` or `7d`; raise BadInput on anything else, and on more than ten years."""
    match = re.fullmatch(r"(\d{1,9})\s*([smhd]?)", text.strip())
    delay = timedelta(seconds=int(match[1]) * UNITS[match[2]]) if match else None
    if delay is None or delay > DELAY_MAX:
        raise BadInput("write a delay as 90s, 15m, 24h or 7d, up to ten years.")
    return delay


def read_instant(text: str) -> datetime:
    """Read an ISO 8601 time with its offset, such as 2030-01-31T09:00+07:00; raise BadInput without one."""
    try:
        instant = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BadInput("write a time as 2030-01-31T09:00+07:00 (ISO 8601).") from None
    if instant.tzinfo is None:
        raise BadInput("the time needs its offset: 2030-01-31T09:00+07:00, or …T02:00Z.")
    return instant
