"""A mail server that we did not write takes our mail."""

import asyncio
from email import message_from_bytes
from email.policy import default
from typing import Any

from aiosmtpd.smtp import SMTP

from app.channels import open_email
from tests.channels.messages import LETTER, settings_for


class Inbox:
    """Keeps what it is handed."""

    def __init__(self) -> None:
        self.envelopes: list[Any] = []

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802 - aiosmtpd's name
        """Take one message."""
        self.envelopes.append(envelope)
        return "250 taken"


async def test_a_message_arrives_once_for_its_one_recipient() -> None:
    inbox = Inbox()
    listener = await asyncio.get_running_loop().create_server(lambda: SMTP(inbox), "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]

    async with listener:
        await open_email(settings_for(f"smtp://127.0.0.1:{port}?tls=none")).send(LETTER, "key")

    (envelope,) = inbox.envelopes
    mail = message_from_bytes(envelope.content, policy=default)
    assert (envelope.mail_from, envelope.rcpt_tos) == ("reminders@example.com", [LETTER.to])
    assert mail["Subject"] == LETTER.subject
    assert mail.get_content_type() == "multipart/mixed"
