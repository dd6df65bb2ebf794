"""The ways out of the house: one file per channel, copied from the last one.

    EMAIL_URL absent            Outbox   .eml files in a folder
    smtp://  smtps://           Smtp     a mail server
    resend://KEY@               Resend   an HTTP API that honours keys

A channel says what became of a message in four words: RecipientRefused (never again), NotSent (again),
MaybeSent (unknown) and ChannelSuspended (nobody now). It decides nothing about retries. Importing this room
is cheap: what a channel needs is imported at its first send.
"""

from pathlib import Path

from app.channels.message import SEND_SECONDS_MAX, Channel, Message, send_seconds
from app.channels.mime import sender_address
from app.channels.outbox import Outbox
from app.channels.resend import Resend, parse_resend_url
from app.channels.smtp import Smtp
from app.channels.smtp_address import parse_smtp_url
from app.config import Settings
from app.errors import ConfigError

__all__ = [
    "SEND_SECONDS_MAX",
    "Channel",
    "Message",
    "check_channel",
    "check_email_url",
    "open_email",
    "send_seconds",
]


def open_email(settings: Settings) -> Channel:
    """Return the e-mail channel that EMAIL_URL names, the outbox when it names none; raise ConfigError.

    Nothing is connected yet.
    """
    return _open(settings)


def check_email_url(settings: Settings) -> None:
    """Raise ConfigError with every problem of EMAIL_URL, EMAIL_FROM and RESEND_BASE_URL."""
    problems = []
    try:
        sender_address(settings.email_from)
    except ValueError as error:
        problems.append(f"EMAIL_FROM: {error}")
    try:
        _open(settings)
    except ConfigError as error:
        problems += [problem for problem in error.problems if problem not in problems]
    if problems:
        raise ConfigError(problems)


async def check_channel(settings: Settings) -> str:
    """Try the e-mail channel without sending anything; return a sentence, raise SendError or ConfigError."""
    return await _open(settings).check()


def _open(settings: Settings) -> Outbox | Smtp | Resend:
    url = "" if settings.email_url is None else settings.email_url.get_secret_value()
    seconds = send_seconds(settings.tick_budget_seconds)
    if not url:
        return Outbox(Path(settings.outbox_dir))
    scheme = url.partition("://")[0].lower()
    if scheme in {"smtp", "smtps"}:
        return Smtp(parse_smtp_url(url), _sender(settings), seconds)
    if scheme == "resend":
        return Resend(*parse_resend_url(url, settings.resend_base_url), seconds)
    raise ConfigError(["EMAIL_URL: must start with smtp://, smtps:// or resend://"])


def _sender(settings: Settings) -> str:
    try:
        return sender_address(settings.email_from)
    except ValueError as error:
        raise ConfigError([f"EMAIL_FROM: {error}"]) from None
