"""A message travels as bytes that every server takes, whatever is in it, and the same bytes each time."""

from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

import pytest

from app.channels import Message
from app.channels.clean import subject_line
from app.channels.mime import as_bytes
from app.errors import RecipientRefused
from tests.channels.messages import LETTER, letter

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
SUBJECTS = [
    "plain",
    "x" * 2000,
    "แจ้งเตือนการจอง " * 40,
    FAMILY * 60,
    "e" + "\u0301" * 500,
    "\u202egnp.exe",
    "Grüße, «ok»",
    "=?utf-8?q?tricked?=",
    "a: b; c, <d@example.org>",
]


def parsed(message: Message) -> EmailMessage:
    mail = message_from_bytes(as_bytes(message), policy=default)
    assert isinstance(mail, EmailMessage)
    return mail


def text_of(mail: EmailMessage, kind: str) -> Any:
    part = mail.get_body((kind,))
    assert part is not None
    return part.get_content().replace("\r\n", "\n").rstrip("\n")


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("text", ["short\n", "n" * 100_000, "ก" * 100_000, FAMILY * 5000, ".\n..\n.x\n", ""])
def test_everything_arrives_and_no_line_is_too_long(subject: str, text: str) -> None:
    raw = as_bytes(letter(subject=subject, text=text, html=f"<p>{text}</p>"))

    mail = message_from_bytes(raw, policy=default)
    lines = raw.split(b"\r\n")
    assert max(len(line) for line in lines) <= 998
    assert raw.isascii()
    assert b"\n" not in raw.replace(b"\r\n", b"")
    assert b"\r" not in raw.replace(b"\r\n", b"")
    assert isinstance(mail, EmailMessage)
    assert text_of(mail, "plain") == text.rstrip("\n")
    assert text_of(mail, "html") == f"<p>{text}</p>"
    assert mail["Subject"] == subject_line(subject)


@pytest.mark.parametrize(
    "subject",
    [
        "one\r\nBcc: v@example.org",
        "one\nBcc: v@example.org",
        "one\rX",
        "one\x00X",
        "one=?utf-8?q?=0D=0ABcc:_v=40example.org?=",
    ],
)
def test_a_line_break_in_the_subject_injects_no_header(subject: str) -> None:
    mail = parsed(letter(subject=subject))

    assert mail.get_all("Bcc") is None
    assert mail.get_all("Subject") is not None
    assert str(mail["Subject"]).startswith("one")
    assert len(mail.get_all("To") or []) == 1


@pytest.mark.parametrize("subject", ["แจ้งเตือน " * 20, "x" * 300, FAMILY * 20])
def test_an_encoded_word_has_no_more_than_75_characters(subject: str) -> None:
    raw = as_bytes(letter(subject=subject))

    words = [word for word in raw.split() if word.startswith(b"=?") and word.endswith(b"?=")]
    assert words
    assert max(len(word) for word in words) <= 75


def test_long_addresses_and_ids_stay_whole() -> None:
    address = f"{'a' * 64}@{'b' * 60}.{'c' * 60}.example.com"
    message_id = f"<{'1' * 90}@dormouse.invalid>"

    raw = as_bytes(letter(to=address, sender=f"A Name <{address}>", message_id=message_id))

    assert f"To: {address}\r\n".encode() in raw
    assert message_id.encode() in raw
    assert raw.count(address.encode()) == 2


def test_the_parts_are_text_html_and_an_invitation() -> None:
    mail = parsed(LETTER)

    (attachment,) = mail.iter_attachments()
    assert [part.get_content_type() for part in mail.walk()] == [
        "multipart/mixed",
        "multipart/alternative",
        "text/plain",
        "text/html",
        "text/calendar",
    ]
    assert attachment.get_filename() == "invite.ics"
    assert attachment["Content-Type"].params["method"] == "PUBLISH"
    assert attachment.get_payload(decode=True) == LETTER.ics.encode()
    assert mail["Message-ID"] == LETTER.message_id
    assert mail["Date"] == LETTER.date
    assert mail["Auto-Submitted"] == "auto-generated"


def test_equal_messages_give_equal_bytes_and_survive_json() -> None:
    again = Message.from_json(LETTER.as_json())

    assert again == LETTER
    assert as_bytes(again) == as_bytes(LETTER)
    assert as_bytes(letter(text="other")) != as_bytes(LETTER)


def test_a_message_kept_without_a_date_can_still_be_sent() -> None:
    kept = {name: value for name, value in LETTER.as_json().items() if name != "date"}

    mail = parsed(Message.from_json(kept))

    assert mail["Date"] is None
    assert mail["Subject"] == LETTER.subject


def test_a_message_shows_nothing_of_itself() -> None:
    assert LETTER.to not in repr(LETTER)


@pytest.mark.parametrize("sender", ["", "nobody", "Name <>"])
def test_a_sender_that_is_no_address_is_a_refusal_and_no_crash(sender: str) -> None:
    with pytest.raises(RecipientRefused, match="invalid_sender"):
        as_bytes(letter(sender=sender))


def test_a_message_without_an_invitation_has_no_attachment() -> None:
    mail = parsed(letter(ics=""))

    assert [part.get_filename() for part in mail.iter_attachments()] == []
