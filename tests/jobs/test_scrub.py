"""What is stored of an error holds its words, and no secret, no address and nothing that PostgreSQL refuses."""

import time

import pytest

from app.jobs.scrub import ERROR_CHARACTERS, error_text, scrub

LEAKS = [
    ("postgresql://app:hunter2@db.example.com/shop refused", "hunter2"),
    ("could not connect to smtp://user:pa55w0rd@mail.example.com:587", "pa55w0rd"),
    ("POST https://api.example.com/x?token=abcdef123456 failed", "abcdef123456"),
    ("Authorization: Bearer eyJhbGciOi.abc.def", "eyJhbGciOi"),
    ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    ("{'api_key': 'live_55ab77'}", "live_55ab77"),
    ('{"password": "hunter2"}', "hunter2"),
    ("X-Api-Key: re_123456789abc was refused", "re_123456789abc"),
    ("CRON_SECRET=0123456789", "0123456789"),
    ("no mailbox here: ada.lovelace+x@example.com", "ada.lovelace"),
    ("<ada@example.org> was refused", "ada@"),
    ("user 用户@例え.jp is unknown", "用户@"),
    ("telegram bot123456:AAabcdefghijklmnopqrstuvwxyz is gone", "AAabcdefgh"),
]


@pytest.mark.parametrize(("text", "leak"), LEAKS)
def test_secrets_and_addresses_are_masked(text, leak):
    kept = error_text(RuntimeError(text))

    assert leak not in kept
    assert kept.startswith("RuntimeError: ")


def test_a_configured_secret_is_masked_wherever_it_stands():
    assert scrub("see s3kr1t-of-ours!", ("s3kr1t-of-ours",)) == "see [secret]!"


def test_ordinary_words_are_kept():
    words = "KeyError: 'user_id' at step 3 of 7, https://example.com/help, 12:30"

    assert scrub(words) == words


def test_what_postgresql_cannot_store_becomes_a_space():
    assert scrub("a\x00b\ud800c\r\nd\u2028e\x1b[31m") == "a b c d e [31m"


def test_an_error_that_says_nothing_is_its_class():
    assert error_text(ValueError()) == "ValueError"


@pytest.mark.parametrize("raised", [RuntimeError, RecursionError, SystemExit, KeyboardInterrupt])
def test_an_error_that_cannot_be_read_is_still_recorded(raised):
    class Mute(Exception):
        def __str__(self) -> str:
            raise raised

    assert error_text(Mute()) == f"Mute: its message could not be read ({raised.__name__})"


@pytest.mark.parametrize(
    "piece", ["x", "a@", "://", "token=", "a.b@c.d ", "\x00", "-", "bot1:", "é" * 10, "x@" * 9 + "."]
)
def test_a_message_of_a_mebibyte_is_cut_and_costs_no_time(piece):
    started = time.process_time()

    kept = error_text(RuntimeError(piece * (1_048_576 // len(piece))))

    assert len(kept) <= ERROR_CHARACTERS
    assert time.process_time() - started < 0.5


def test_a_secret_across_the_cut_is_masked_whole():
    secret = "s3kr1t-" * 6
    text = "x" * (ERROR_CHARACTERS - 20) + secret + "y" * 1000

    kept = scrub(text, (secret,))

    assert "s3kr" not in kept


def test_an_address_across_the_cut_is_masked_whole():
    kept = scrub("x" * (ERROR_CHARACTERS - 10) + " ada.lovelace@example.com" + "y" * 5000)

    assert "ada" not in kept
