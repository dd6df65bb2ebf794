"""Mail through Resend's API, sent once for certain: the same key and body never send twice within a day.

    200 and an id                       sent
    409 invalid_idempotent_request      RecipientRefused: the body changed under its key
    400 413 422 and other 4xx           RecipientRefused: this message alone
    409 otherwise                       NotSent: the first request of this key still runs
    429                                 the channel rests: as asked, hours or a day when a quota is used up
    401 403 404 405, invalid_from_*     the channel rests: key, domain or address is wrong for every message
    3xx                                 the channel rests: redirects are not followed
    408 5xx, or no answer               MaybeSent: safe to repeat under the same key
    no connection                       NotSent

The error's `name` decides before the status does. Messages of the API are not repeated: they quote addresses.
"""

import base64
import json
import re
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

from app.channels import waits
from app.channels.http import Reply, exchange
from app.channels.message import Message
from app.channels.smtp_address import is_loopback
from app.errors import ChannelSuspended, ConfigError, MaybeSent, NotSent, RecipientRefused, SendError

AGENT = "dormouse"
NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
KEY = re.compile(r"[A-Za-z0-9_.-]{1,256}")
MISCONFIGURED = frozenset({401, 403, 404, 405})
MISCONFIGURED_NAMES = frozenset({"missing_api_key", "restricted_api_key", "invalid_api_key", "invalid_from_address"})
QUOTAS = {
    "daily_quota_exceeded": waits.QUOTA_OF_A_DAY,
    "monthly_quota_exceeded": waits.QUOTA_OF_A_MONTH,
}
REDIRECTED = range(300, 400)
REFUSED = range(400, 500)
TIMED_OUT = 408
STILL_RUNNING = 409
THROTTLED = 429


@dataclass(frozen=True, repr=False)
class Resend:
    """Resend's API at *base_url*; a whole send takes at most *seconds*."""

    api_key: str
    base_url: str
    seconds: float
    name: ClassVar[str] = "resend"
    honours_key: ClassVar[bool] = True

    async def send(self, message: Message, key: str) -> str | None:
        """Hand *message* to Resend under *key* and return Resend's id."""
        headers = {**self._headers(), "content-type": "application/json", "idempotency-key": key}
        reply = await exchange(
            "POST", f"{self.base_url}/emails", headers=headers, body=as_body(message), seconds=self.seconds
        )
        accepted = _answer(reply).get("id") if reply.is_success else None
        if isinstance(accepted, str) and accepted:
            return accepted[:200]
        raise judge(reply)

    async def check(self) -> str:
        """List the domains, which sends nothing; raise SendError when the key is not taken.

        A key that may only send is refused for that list by name, and so is known to be good.
        """
        reply = await exchange("GET", f"{self.base_url}/domains", headers=self._headers(), seconds=self.seconds)
        if reply.is_success or _name(reply) == "restricted_api_key":
            return "Resend takes our key."
        raise judge(reply)

    def _headers(self) -> dict[str, str]:
        return {
            "authorization": f"Bearer {self.api_key}",
            "user-agent": AGENT,
            "accept": "application/json",
            "accept-encoding": "identity",
        }


def parse_resend_url(url: str, base_url: str) -> tuple[str, str]:
    """Return the key of `resend://KEY@` and the checked *base_url*; raise ConfigError with every problem."""
    problems = []
    parts = urlsplit(url)
    key = unquote(parts.netloc.removesuffix("@"))
    if not KEY.fullmatch(key) or parts.path not in {"", "/"} or parts.query or parts.fragment:
        problems.append("EMAIL_URL: write resend://KEY@ with the API key and nothing else")
    if not _is_safe_base(base_url):
        problems.append("RESEND_BASE_URL: must be https://host, or http:// on this machine")
    if problems:
        raise ConfigError(problems)
    return key, base_url.rstrip("/")


def as_body(message: Message) -> bytes:
    """Return the request's body: the same bytes for the same message, or the key would be refused.

    The attachment's name and type must agree, or Resend takes the message and drops it in silence.
    """
    invitation = {
        "filename": "invite.ics",
        "content": base64.b64encode(message.ics.encode()).decode(),
        "content_type": "text/calendar",
    }
    body: dict[str, Any] = {
        "from": message.sender,
        "to": [message.to],
        "subject": message.subject,
        "html": message.html,
        "text": message.text,
    }
    if message.ics:
        body["attachments"] = [invitation]
    return json.dumps(body, separators=(",", ":")).encode()


def judge(reply: Reply) -> SendError:
    """Return what an answer other than an accepted message means."""
    name = _name(reply)
    reason = f"resend: {reply.status} {name}".rstrip()
    hint = waits.hinted_wait(reply.headers)
    rest = _channel_rest(reply.status, name, hint)
    if rest is not None:
        return ChannelSuspended(reason, rest)
    if name == "invalid_idempotent_request":
        return RecipientRefused(f"{reason}: another message was sent under this key")
    if reply.status == STILL_RUNNING:
        return NotSent(reason, hint)
    if reply.status in REFUSED and reply.status != TIMED_OUT:
        return RecipientRefused(reason)
    return MaybeSent(reason)


def _channel_rest(status: int, name: str, hint: float | None) -> float | None:
    """Return how long the whole channel must rest; None when the answer concerns this message alone."""
    if name in QUOTAS:
        return max(QUOTAS[name], hint or 0)
    if status == THROTTLED or name == "rate_limit_exceeded":
        return waits.THROTTLED if hint is None else hint
    if status in MISCONFIGURED or name in MISCONFIGURED_NAMES or status in REDIRECTED:
        return waits.MISCONFIGURED
    return None


def _name(reply: Reply) -> str:
    name = _answer(reply).get("name")
    return name if isinstance(name, str) and NAME.fullmatch(name) else ""


def _answer(reply: Reply) -> dict[str, Any]:
    try:
        answer = json.loads(reply.body)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _is_safe_base(base_url: str) -> bool:
    try:
        parts = urlsplit(base_url)
        plain = parts.scheme == "http" and is_loopback(parts.hostname)
        _ = parts.port
    except ValueError:
        return False
    extra = parts.username or parts.password or parts.query or parts.fragment
    return bool(parts.hostname) and not extra and (parts.scheme == "https" or plain)
