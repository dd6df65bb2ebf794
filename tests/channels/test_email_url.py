"""EMAIL_URL chooses the channel; what it cannot mean is refused at start-up, and no message repeats it."""

import subprocess
import sys

import pytest

from app.channels import check_email_url, open_email
from app.channels.smtp import Smtp
from app.errors import ConfigError
from tests.channels.messages import settings_for

GOOD = [
    (None, "outbox", True),
    ("smtps://user:pass@mail.example.com", "smtp", False),
    ("smtp://user:pass@mail.example.com:2525", "smtp", False),
    ("smtp://me@example.com:p%40ss@mail.example.com/", "smtp", False),
    ("smtp://mailpit:1025?tls=none", "smtp", False),
    ("smtp://user:pass@127.0.0.1?tls=none", "smtp", False),
    ("resend://re_abc_123@", "resend", True),
    ("resend://re_abc_123", "resend", True),
    ("SMTPS://user:pass@mail.example.com", "smtp", False),
]
BAD = [
    "mail.example.com",
    "http://canary@example.com",
    "sendgrid://canary@",
    "smtp://",
    "smtp://user:canary@",
    "smtp://user:canary@mail.example.com:port",
    "smtp://user:canary@mail.example.com:99999",
    "smtp://user:can/ary@mail.example.com",
    "smtp://user:can#ary@mail.example.com",
    "smtp://user:can%00ary@mail.example.com",
    "smtp://user:can%0Aary@mail.example.com",
    "smtp://canary@mail.example.com",
    "smtp://:canary@mail.example.com",
    "smtp://user:canary@mail.example.com?tls=non",
    "smtp://user:canary@mail.example.com?starttls=no",
    "smtps://user:canary@mail.example.com?tls=none",
    "smtp://user:canary@mail.example.com?tls=none",
    "smtp://user:canary@mail.example.com:465",
    "smtp://[canary",
    "resend://",
    "resend://@",
    "resend://canary:x@",
    "resend://canary@api.example.com",
    "resend://canary@/x",
    "resend://canary?x=1",
    "resend://can%0Aary@",
]


@pytest.mark.parametrize(("url", "name", "honours_key"), GOOD)
def test_the_url_chooses_the_channel(url: str | None, name: str, honours_key: bool) -> None:
    settings = settings_for(url)

    check_email_url(settings)
    channel = open_email(settings)

    assert channel.name == name
    assert channel.honours_key is honours_key


@pytest.mark.parametrize("url", BAD)
def test_a_url_that_cannot_be_meant_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_email_url(settings_for(url))

    assert all(problem.startswith("EMAIL_URL: ") for problem in caught.value.problems)
    assert "can" not in str(caught.value).replace("cannot", "")
    assert caught.value.problems


@pytest.mark.parametrize(
    ("url", "security", "port"),
    [
        ("smtps://mail.example.com", "implicit", 465),
        ("smtp://mail.example.com", "starttls", 587),
        ("smtp://mail.example.com?tls=none", "none", 25),
    ],
)
def test_plain_text_is_spoken_only_where_it_is_written(url: str, security: str, port: int) -> None:
    channel = open_email(settings_for(url))

    assert isinstance(channel, Smtp)
    assert (channel.address.security, channel.address.port) == (security, port)


@pytest.mark.parametrize("sender", ["nobody", "", "Name <>", "a@b@example.com", "ü@example.com", "a b"])
def test_a_sender_without_an_address_is_refused(sender: str) -> None:
    with pytest.raises(ConfigError, match="EMAIL_FROM"):
        check_email_url(settings_for(None, email_from=sender))


@pytest.mark.parametrize(
    "base", ["http://api.example.com", "ftp://x", "https://", "https://u:canary@x", "https://x?y=1", "http://[x"]
)
def test_a_key_is_never_sent_in_the_clear(base: str) -> None:
    with pytest.raises(ConfigError, match="RESEND_BASE_URL"):
        check_email_url(settings_for("resend://re_abc@", resend_base_url=base))


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        check_email_url(settings_for("resend://", email_from="nobody", resend_base_url="ftp://x"))

    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        "EMAIL_FROM",
        "EMAIL_URL",
        "RESEND_BASE_URL",
    ]


def test_importing_the_room_is_cheap() -> None:
    heavy = ["httpx", "aiosmtplib", "jinja2", "babel", "icalendar", "email_validator", "dns"]
    program = f"import sys, app.channels; print([name for name in {heavy} if name in sys.modules])"

    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert found.stdout.strip() == "[]"
