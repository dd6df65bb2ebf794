"""Messages for the tests of this folder."""

from dataclasses import replace
from typing import Any

from pydantic import SecretStr

from app.channels import Message
from app.config import Settings

LETTER = Message(
    sender="Dormouse <reminders@example.com>",
    to="guest@example.org",
    subject="Reminder: Haircut",
    text="Hello,\n.a line that begins with a dot\n",
    html="<p>Hello</p>",
    ics="BEGIN:VCALENDAR\r\nMETHOD:PUBLISH\r\nEND:VCALENDAR\r\n",
    message_id="<1@dormouse.invalid>",
    date="Fri, 04 Dec 2026 09:30:00 +0000",
)


def letter(**changes: Any) -> Message:
    """A message with some fields changed."""
    return replace(LETTER, **changes)


def settings_for(email_url: str | None, **changes: Any) -> Settings:
    """Settings that name *email_url* as the way out; a short budget keeps a silent server's tests short."""
    return Settings(
        email_url=None if email_url is None else SecretStr(email_url), **{"tick_budget_seconds": 25} | changes
    )
