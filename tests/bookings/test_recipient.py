"""A bad address is found before anything is sent, and is final for its own reminder alone."""

import pytest

from app.bookings.render import check_recipient
from app.errors import RecipientRefused
from tests.bookings.rendering import render

BAD = [
    None,
    "",
    " ",
    "nobody",
    "a b@x.io",
    "a@x.io, b@x.io",
    "a@x.io; b@x.io",
    "用户@例え.jp",
    "é@x.io",
    "a" * 400,
    f"{'a' * 400}@x.io",
    f"{'a' * 65}@x.io",
    "a@" + "b" * 300 + ".io",
    "a@x.io\r\nBcc: v@x.io",
    "a@x\r\n.io",
    "a\x00@x.io",
    "Name <a@x.io>",
    '"a b"@x.io',
    "a@[127.0.0.1]",
    "a@localhost",
    "a@x",
    "@x.io",
    "a@",
    "a..b@x.io",
    "a@\ud800.io",
    "\ud800@x.io",
    "a" * 1_000_000,
]


@pytest.mark.parametrize("address", BAD)
def test_a_bad_address_is_refused_for_good(address: str | None) -> None:
    with pytest.raises(RecipientRefused) as caught:
        check_recipient(address)

    assert str(caught.value) == "invalid_recipient"
    assert caught.value.__context__ is None or caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("address", "taken"),
    [
        ("a@x.io", "a@x.io"),
        (" a@x.io\n", "a@x.io"),
        ("A.b+c@EXAMPLE.com", "A.b+c@example.com"),
        ("o'brien@example.org", "o'brien@example.org"),
        ("user@例え.jp", "user@xn--r8jz45g.jp"),
    ],
)
def test_a_good_address_is_written_as_servers_take_it(address: str, taken: str) -> None:
    assert check_recipient(address) == taken
    assert render(attendee_email=address).to == taken


@pytest.mark.parametrize("address", BAD)
def test_a_reminder_to_nobody_is_refused_and_does_not_crash(address: str | None) -> None:
    with pytest.raises(RecipientRefused, match="invalid_recipient"):
        render(attendee_email=address)
