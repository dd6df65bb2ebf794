"""Mail through a mail server, one connection a message.

    connect -> EHLO -> STARTTLS -> EHLO -> AUTH -> MAIL FROM -> RCPT TO -> DATA -> the message and its dot
    |------------------------ lost here: NotSent -----------------------|  lost here: MaybeSent

TLS that was asked for is never given up: a server that offers no STARTTLS gets no message and no password.
The message is written by hand, not by aiosmtplib's `sendmail`: only so is it known on which side of the dot a
loss falls.
SMTP knows no key; the stable Message-ID is a hint to the reader's mail program and no more.
"""

import asyncio
import re
import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from app.channels import mime, waits
from app.channels.message import Message
from app.channels.smtp_address import SmtpAddress
from app.channels.smtp_verdict import Step, judge, lost
from app.channels.tls import tls_context
from app.errors import ChannelSuspended

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import aiosmtplib

DOTS = re.compile(rb"^\.", re.MULTILINE)
GO_AHEAD = 354
TAKEN = range(200, 300)


@dataclass
class _Talk:
    """How far one conversation came."""

    step: Step = Step.GREETING


@dataclass(frozen=True, repr=False)
class Smtp:
    """The mail server at *address*, as *sender*; a whole send takes at most *seconds*."""

    address: SmtpAddress
    sender: str
    seconds: float
    name: ClassVar[str] = "smtp"
    honours_key: ClassVar[bool] = False

    async def send(self, message: Message, key: str) -> str | None:  # noqa: ARG002 - SMTP has no place for a key
        """Hand *message* to the server; SMTP returns no id."""
        content = mime.as_bytes(message)
        async with self._conversation() as (client, talk):
            await self._envelope(client, talk, message.to, len(content))
            await _content(client, talk, content)
        return None

    async def check(self) -> str:
        """Connect, protect the way and log in, and say so; raise SendError as `send` would."""
        async with self._conversation():
            return f"The mail server takes our connection ({self.address.security} TLS) and our login."

    @asynccontextmanager
    async def _conversation(self) -> "AsyncIterator[tuple[aiosmtplib.SMTP, _Talk]]":
        """Lend a connection that is ready for MAIL FROM, and turn whatever goes wrong into a SendError."""
        import aiosmtplib  # noqa: PLC0415 - a tick's cold start must not pay for it

        talk = _Talk()
        client = aiosmtplib.SMTP(
            hostname=self.address.host,
            port=self.address.port,
            use_tls=self.address.security == "implicit",
            start_tls=False,
            tls_context=tls_context(),
            local_hostname=self.sender.rpartition("@")[2],
            timeout=self.seconds,
        )
        try:
            async with asyncio.timeout(self.seconds):
                await client.connect()
                await self._introduce(client, talk)
                yield client, talk
                _say_goodbye(client)
        except aiosmtplib.SMTPResponseException as error:
            raise judge(talk.step, error.code, error.message) from None
        except (aiosmtplib.SMTPException, OSError) as error:
            raise _broken(talk.step, error) from None
        finally:
            client.close()

    async def _introduce(self, client: "aiosmtplib.SMTP", talk: _Talk) -> None:
        talk.step = Step.HELLO
        await client.ehlo()
        if self.address.security == "starttls":
            talk.step = Step.STARTTLS
            if not client.supports_extension("starttls"):
                raise ChannelSuspended("smtp: the server offers no STARTTLS, so nothing was sent", waits.MISCONFIGURED)
            await client.starttls()
            talk.step = Step.HELLO
            await client.ehlo()
        if self.address.user is not None:
            talk.step = Step.LOGIN
            if not client.supported_auth_methods:
                raise ChannelSuspended("smtp: the server offers no login that we know", waits.MISCONFIGURED)
            await client.login(self.address.user, self.address.password or "")

    async def _envelope(self, client: "aiosmtplib.SMTP", talk: _Talk, to: str, size: int) -> None:
        talk.step = Step.SENDER
        await client.mail(self.sender, options=[f"SIZE={size}"] if client.supports_extension("size") else None)
        talk.step = Step.RECIPIENT
        await client.rcpt(to)


async def _content(client: "aiosmtplib.SMTP", talk: _Talk, content: bytes) -> None:
    """Send *content* and its final dot, and wait for the server to take it."""
    talk.step = Step.DATA
    ready = await client.execute_command(b"DATA")
    if ready.code != GO_AHEAD or client.protocol is None:
        raise judge(talk.step, ready.code, ready.message)
    talk.step = Step.DOT
    client.protocol.write(DOTS.sub(b"..", content) + b".\r\n")
    taken = await client.protocol.read_response()
    if taken.code not in TAKEN:
        raise judge(talk.step, taken.code, taken.message)


def _broken(step: Step, error: Exception) -> Exception:
    """Return what a lost, refused or late connection means; a wrong certificate concerns the channel."""
    if isinstance(error, ssl.SSLCertVerificationError) or isinstance(error.__cause__, ssl.SSLCertVerificationError):
        return ChannelSuspended("smtp: the server's certificate cannot be trusted", waits.MISCONFIGURED)
    return lost(step, f"no answer ({type(error).__name__})")


def _say_goodbye(client: "aiosmtplib.SMTP") -> None:
    """Say QUIT and wait for no answer: the message has been taken by now."""
    if client.protocol is not None and client.is_connected:
        client.protocol.write(b"QUIT\r\n")
