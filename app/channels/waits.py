"""How long a channel rests: what the far side asked for, else these defaults.

    explicit hint (Retry-After)  >  the provider's reset header  >  the defaults below

All are seconds.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

THROTTLED = 60.0
MISCONFIGURED = 900.0
QUOTA_OF_A_DAY = 3 * 3600.0
QUOTA_OF_A_MONTH = 24 * 3600.0
CAP = 24 * 3600.0
LEAST = 1.0

SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


def retry_after(value: str | None, date: str | None = None) -> float | None:
    """Read a Retry-After *value*, seconds or an HTTP-date, as seconds up to a day; None when it is neither.

    A date is measured against the same answer's Date header, *date*, so that no clock of ours matters.
    """
    if value is None:
        return None
    text = value.strip()
    if SECONDS.fullmatch(text):
        return min(float(text), CAP)
    until, sent = _http_date(text), _http_date(date or "")
    if until is None or sent is None:
        return None
    return min(max((until - sent).total_seconds(), 0.0), CAP)


def hinted_wait(headers: Mapping[str, str]) -> float | None:
    """Return the wait that *headers* (lower case) ask for, at least one second; None when they name none."""
    hint = retry_after(headers.get("retry-after"), headers.get("date"))
    if hint is None:
        hint = retry_after(headers.get("ratelimit-reset"))
    return None if hint is None else max(hint, LEAST)


def _http_date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else None
