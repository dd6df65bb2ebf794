"""What a mail server's answers, and its silences, mean for a message."""

import base64
import re

import pytest

from app.channels import open_email
from app.errors import ChannelSuspended, MaybeSent, NotSent, RecipientRefused, SendError
from tests.channels.messages import LETTER, letter, settings_for
from tests.channels.smtp_server import DROP, HANG, smtp_server

LOGIN = "smtp://{user}127.0.0.1:{port}?tls=none"
ROWS = [
    ("GREETING", "421 4.3.2 too busy", ChannelSuspended, 60),
    ("GREETING", "554 5.3.2 no mail here", ChannelSuspended, 900),
    ("GREETING", "450 later", NotSent, None),
    ("GREETING", DROP, NotSent, None),
    ("EHLO", "502 what", ChannelSuspended, 900),
    ("EHLO", "421 closing", ChannelSuspended, 60),
    ("EHLO", DROP, NotSent, None),
    ("MAIL", "250-a broken\r\nanswer", NotSent, None),
    ("MAIL", "451 4.7.1 try later", NotSent, None),
    ("MAIL", "421 4.7.0 slow down", ChannelSuspended, 60),
    ("MAIL", "454 4.7.0 Throttling failure: Maximum sending rate exceeded", ChannelSuspended, 60),
    ("MAIL", "454 4.7.0 Throttling failure: Daily message quota exceeded", ChannelSuspended, 3 * 3600),
    ("MAIL", "530 5.7.0 authentication required", ChannelSuspended, 900),
    ("MAIL", "553 5.7.1 sender not allowed", ChannelSuspended, 900),
    ("MAIL", "552 5.3.4 too big", RecipientRefused, None),
    ("MAIL", DROP, NotSent, None),
    ("RCPT", "450 4.2.0 greylisted", NotSent, None),
    ("RCPT", "451 4.3.0 local error", NotSent, None),
    ("RCPT", "452 4.2.2 mailbox full", NotSent, None),
    ("RCPT", "550 5.1.1 no such mailbox", RecipientRefused, None),
    ("RCPT", "551 5.1.6 moved", RecipientRefused, None),
    ("RCPT", "553 5.1.3 bad address", RecipientRefused, None),
    ("RCPT", "554 5.7.1 relay access denied", RecipientRefused, None),
    ("RCPT", "421 4.7.0 slow down", ChannelSuspended, 60),
    ("RCPT", DROP, NotSent, None),
    ("DATA", "451 4.3.0 not now", NotSent, None),
    ("DATA", "554 5.5.1 no valid recipients", RecipientRefused, None),
    ("DATA", DROP, NotSent, None),
    ("DOT", "421 4.3.2 closing", ChannelSuspended, 60),
    ("DOT", "451 4.3.0 local error", NotSent, None),
    ("DOT", "452 4.3.1 disk full", NotSent, None),
    ("DOT", "550 5.7.1 looks like spam", RecipientRefused, None),
    ("DOT", "552 5.3.4 too big", RecipientRefused, None),
    ("DOT", "554 5.6.0 refused", RecipientRefused, None),
    ("DOT", "not a code", MaybeSent, None),
    ("DOT", "354 what?", MaybeSent, None),
    ("DOT", DROP, MaybeSent, None),
]


@pytest.mark.parametrize(("verb", "reply", "expected", "delay"), ROWS)
async def test_each_answer_has_its_meaning(
    verb: str, reply: str, expected: type[SendError], delay: float | None
) -> None:
    async with smtp_server({verb: reply}) as server:
        channel = open_email(settings_for(LOGIN.format(user="", port=server.port)))

        with pytest.raises(SendError) as caught:
            await channel.send(LETTER, "key")

    assert type(caught.value) is expected
    assert getattr(caught.value, "delay", None) == delay
    assert (len(server.messages) == 1) is (verb == "DOT")


@pytest.mark.parametrize("verb", ["GREETING", "MAIL", "RCPT", "DATA"])
async def test_silence_before_the_dot_means_not_sent(verb: str) -> None:
    async with smtp_server({verb: HANG}) as server:
        url = LOGIN.format(user="", port=server.port)
        channel = open_email(settings_for(url, tick_budget_seconds=1))

        with pytest.raises(NotSent):
            await channel.send(LETTER, "key")


async def test_silence_after_the_dot_means_maybe_sent() -> None:
    async with smtp_server({"DOT": HANG}) as server:
        url = LOGIN.format(user="", port=server.port)
        channel = open_email(settings_for(url, tick_budget_seconds=1))

        with pytest.raises(MaybeSent):
            await channel.send(LETTER, "key")


@pytest.mark.parametrize("reply", ["535 5.7.8 wrong", "534 5.7.9 too weak", "530 5.7.0 first TLS"])
async def test_refused_credentials_suspend_the_channel(reply: str) -> None:
    async with smtp_server({"AUTH": reply}) as server:
        channel = open_email(settings_for(LOGIN.format(user="user:pass@", port=server.port)))

        with pytest.raises(ChannelSuspended) as caught:
            await channel.send(LETTER, "key")

    assert caught.value.delay == 900
    assert "MAIL" not in server.verbs


async def test_a_passing_failure_of_the_login_suspends_for_a_minute() -> None:
    async with smtp_server({"AUTH": "454 4.7.0 temporary authentication failure"}) as server:
        channel = open_email(settings_for(LOGIN.format(user="user:pass@", port=server.port)))

        with pytest.raises(ChannelSuspended) as caught:
            await channel.send(LETTER, "key")

    assert caught.value.delay == 60


async def test_a_server_without_a_login_gets_no_message() -> None:
    async with smtp_server({"EHLO": "250 loopback"}) as server:
        channel = open_email(settings_for(LOGIN.format(user="user:pass@", port=server.port)))

        with pytest.raises(ChannelSuspended):
            await channel.send(LETTER, "key")

    assert set(server.verbs) <= {"EHLO", "GONE"}


async def test_a_port_where_nobody_listens_means_not_sent() -> None:
    async with smtp_server() as server:
        url = LOGIN.format(user="", port=server.port)

    with pytest.raises(NotSent):
        await open_email(settings_for(url)).send(LETTER, "key")


async def test_an_accepted_message_is_sent_even_if_the_goodbye_fails() -> None:
    async with smtp_server({"QUIT": DROP}) as server:
        sent = await open_email(settings_for(LOGIN.format(user="", port=server.port))).send(LETTER, "key")

    assert sent is None
    assert len(server.messages) == 1


async def test_what_arrives_is_what_was_rendered() -> None:
    async with smtp_server() as server:
        channel = open_email(settings_for(LOGIN.format(user="", port=server.port)))
        await channel.send(LETTER, "key")
        await channel.send(LETTER, "key")

    first, second = server.messages
    assert first == second
    assert b"\r\n..a line that begins with a dot\r\n" in first
    assert b"Message-ID: <1@dormouse.invalid>\r\n" in first
    assert any(line.startswith("MAIL FROM:<reminders@example.com> SIZE=") for line in server.lines)
    assert "RCPT TO:<guest@example.org>\r\n" in server.lines
    assert "EHLO example.com\r\n" in server.lines


async def test_user_and_password_are_percent_decoded() -> None:
    async with smtp_server() as server:
        url = LOGIN.format(user="me%40example.com:p%40ss%3Aw%2Frd@", port=server.port)
        await open_email(settings_for(url)).send(LETTER, "key")

    token = next(line for line in server.lines if line.startswith("AUTH PLAIN")).split()[2]
    assert base64.b64decode(token) == b"\0me@example.com\0p@ss:w/rd"


@pytest.mark.parametrize("verb", ["AUTH", "MAIL", "RCPT", "DOT"])
async def test_no_error_text_holds_an_address_or_a_password(verb: str) -> None:
    reply = "550 5.1.1 <guest@example.org> and <reminders@example.com> said hunter2 to user9"
    async with smtp_server({verb: reply}) as server:
        channel = open_email(settings_for(LOGIN.format(user="user9:hunter2@", port=server.port)))

        with pytest.raises(SendError) as caught:
            await channel.send(LETTER, "key")

    assert not re.search(r"@|guest|reminders|hunter2|user9", str(caught.value))
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    assert "550 5.1.1" in str(caught.value)
    assert "hunter2" not in repr(channel)


@pytest.mark.parametrize(
    "to", ["", "nobody", "a b@example.org", "a@example.org, b@example.org", "x\r\nRCPT@example.org"]
)
async def test_a_recipient_that_is_no_address_never_reaches_the_server(to: str) -> None:
    async with smtp_server() as server:
        channel = open_email(settings_for(LOGIN.format(user="", port=server.port)))

        with pytest.raises(RecipientRefused, match="invalid_recipient"):
            await channel.send(letter(to=to), "key")

    assert server.verbs == []
