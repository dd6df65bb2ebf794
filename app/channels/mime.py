"""A message as the bytes that travel: text, HTML and an invitation, the same bytes each time.

    multipart/mixed
    ├── multipart/alternative
    │   ├── text/plain
    │   └── text/html
    └── text/calendar      invite.ics, METHOD:PUBLISH

Everything is 7-bit and no line is longer than SMTP allows, so every server takes it. Headers are folded at
76, not at 998: Python keeps an address or a Message-ID whole in any case, and an encoded word may have 75
characters only. (A header that carries a long URL, such as List-Unsubscribe, would need 998.)
"""

import hashlib
import re
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage, MIMEPart
from email.policy import SMTP
from email.utils import parseaddr

from app.channels.clean import one_line, subject_line
from app.channels.message import Message
from app.errors import RecipientRefused

POLICY = SMTP.clone(cte_type="7bit", max_line_length=76)
ADDRESS = re.compile(r"[^\s@<>\"(),:;\\\[\]]{1,64}@[A-Za-z0-9.-]{1,253}")


def as_bytes(message: Message) -> bytes:
    """Return *message* as an RFC 5322 text with CRLF line ends; equal messages give equal bytes.

    Raise RecipientRefused when its sender or recipient is no address that a header can carry.
    """
    mail = EmailMessage(policy=POLICY)
    name, sender = parseaddr(one_line(message.sender))
    mail["From"] = _address(name, sender, "invalid_sender")
    mail["To"] = _address("", message.to, "invalid_recipient")
    mail["Subject"] = subject_line(message.subject)
    mail["Message-ID"] = one_line(message.message_id)
    if message.date:
        mail["Date"] = one_line(message.date)
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(message.text)
    mail.add_alternative(message.html, subtype="html")
    if message.ics:
        mail.add_attachment(
            message.ics.encode(),
            maintype="text",
            subtype="calendar",
            filename="invite.ics",
            params={"method": "PUBLISH", "charset": "utf-8"},
        )
    _settle_boundaries(mail, message)
    return mail.as_bytes(policy=POLICY)


def sender_address(sender: str) -> str:
    """Return the bare address of `Name <address>`; raise ValueError when a header could not carry it."""
    return _plain(parseaddr(one_line(sender))[1])


def _address(name: str, address: str, reason: str) -> Address:
    try:
        return Address(name, addr_spec=_plain(address))
    except (ValueError, IndexError, MessageError):
        raise RecipientRefused(reason) from None


def _plain(address: str) -> str:
    if not ADDRESS.fullmatch(address) or not address.isascii():
        raise ValueError("holds no e-mail address")
    return address


def _settle_boundaries(mail: EmailMessage, message: Message) -> None:
    """Replace the random boundaries: a frozen message must not change from one try to the next."""
    digest = hashlib.sha256("\0".join(message.as_json().values()).encode()).hexdigest()
    multiparts: list[MIMEPart] = [part for part in mail.walk() if part.is_multipart()]
    for number, part in enumerate(multiparts):
        part.set_boundary(f"={number}={digest[:40]}=")
