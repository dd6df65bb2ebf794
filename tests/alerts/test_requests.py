"""What Telegram, Slack, Discord and LINE are sent: apprise's own requests, seen where they would leave the machine.

Held against the providers' documents: address, method, token's place, shape, limits, and letters that mean something.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
import requests
from pydantic import SecretStr

from app.alerts import Alert, digest
from app.sinks import Sink, send

TELEGRAM = "tgram://123456789:AAFakeFakeFakeFakeFakeFakeFakeFakeFake/12345/"
SLACK = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/"
DISCORD = "discord://123456789012345678/abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghij12345678"
LINE = "line://channel-access-token/U1234567890123456789012345678901ab"
HOSTILE = "<!channel> @everyone *a* [x](https://example.org) `b` & <b> ||c||"
PUBLIC_URL = "https://jobs.example.com"

Sent = list[tuple[str, str, dict[str, Any]]]


class Reply:
    """What the far side would answer."""

    def __init__(self, status: int, text: str) -> None:
        self.status_code, self.text, self.content = status, text, text.encode()
        self.headers: dict[str, str] = {}

    def json(self) -> Any:
        return json.loads(self.text)


@pytest.fixture
def far_side(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Sent]:
    """Stand in for the network below apprise: `far_side(200, "ok")` gives the list of what is sent."""

    def stand_in(status: int, text: str) -> Sent:
        sent: Sent = []

        def request(_self: Any, method: str, url: str, **options: Any) -> Reply:
            sent.append((method.upper(), url, options))
            return Reply(status, text)

        monkeypatch.setattr(requests.Session, "request", request)
        return sent

    return stand_in


def make_digest(labels: int = 1) -> tuple[str, str]:
    alerts = [
        Alert(number, "s", topic, f"{number} {HOSTILE}", 1)
        for topic in ("jobs_dead", "reminders_failed", "reminders_missed", "channel_suspended", "unknown_kinds")
        for number in range(labels)
    ]
    return digest(alerts, PUBLIC_URL)


def make_sink(url: str) -> Sink:
    return Sink("s", SecretStr(url))


def body_of(sent: Sent) -> Any:
    return json.loads(sent[-1][2]["data"])


async def test_telegram_gets_send_message_with_escaped_html_and_the_token_in_the_address_alone(
    far_side: Callable[..., Sent],
) -> None:
    sent = far_side(200, '{"ok": true, "result": {"message_id": 1}}')

    was_taken = await send(make_sink(TELEGRAM), *make_digest(50))

    (method, url, options), body = sent[-1], body_of(sent)
    assert was_taken
    assert (method, url) == (
        "POST",
        "https://api.telegram.org/bot123456789:AAFakeFakeFakeFakeFakeFakeFakeFakeFake/sendMessage",
    )
    assert (str(body["chat_id"]), body["parse_mode"]) == ("12345", "HTML")
    assert 1 <= len(body["text"]) <= 4096
    assert "AAFake" not in options["data"]
    assert set(_tags(body["text"])) <= {"<b>", "</b>"}
    assert f"{PUBLIC_URL}/admin" in body["text"]


def _tags(text: str) -> list[str]:
    return [f"<{piece.partition('>')[0]}>" for piece in text.split("<")[1:]]


async def test_slack_gets_text_without_a_mention_or_markup(far_side: Callable[..., Sent]) -> None:
    sent = far_side(200, "ok")

    was_taken = await send(make_sink(SLACK), *make_digest(50))

    (method, url, options), body = sent[-1], body_of(sent)
    (attachment,) = body["attachments"]
    assert was_taken
    assert (method, url) == ("POST", "https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ")
    assert options["headers"]["Content-Type"].startswith("application/json")
    assert body["mrkdwn"] is False
    assert 1 <= len(attachment["text"]) <= 3000
    assert not any(mark in attachment["text"] for mark in ("<", "@", "*", "`"))
    assert "apprise" not in options["data"].lower()


async def test_discord_gets_at_most_2000_characters_and_no_mention(far_side: Callable[..., Sent]) -> None:
    sent = far_side(200, '{"id": "1"}')

    was_taken = await send(make_sink(DISCORD), *make_digest(50))

    (method, url, _), body = sent[-1], body_of(sent)
    assert was_taken
    assert len(sent) == 1
    assert method == "POST"
    assert url.partition("?")[0] == f"https://discord.com/api/webhooks/{DISCORD.removeprefix('discord://')}"
    assert 1 <= len(body["content"]) <= 2000
    assert not any(mark in body["content"] for mark in ("@", "<", "*", "`", "||"))


async def test_line_gets_a_push_of_one_text_within_its_5000_units(far_side: Callable[..., Sent]) -> None:
    sent = far_side(200, '{"sentMessages": [{"id": "1"}]}')

    was_taken = await send(make_sink(LINE), *make_digest(50))

    (method, url, options), body = sent[-1], body_of(sent)
    (message,) = body["messages"]
    assert was_taken
    assert (method, url) == ("POST", "https://api.line.me/v2/bot/message/push")
    assert options["headers"]["Authorization"] == "Bearer channel-access-token"
    assert body["to"] == "U1234567890123456789012345678901ab"
    assert message["type"] == "text"
    assert 1 <= len(message["text"].encode("utf-16-le")) // 2 <= 5000


@pytest.mark.parametrize("url", [TELEGRAM, SLACK, DISCORD, LINE])
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
async def test_an_answer_that_is_no_success_counts_as_not_taken(
    far_side: Callable[..., Sent], url: str, status: int
) -> None:
    far_side(status, '{"ok": false, "error_code": 400, "description": "Bad Request", "message": "limit"}')

    was_taken = await send(make_sink(url), "title", "text")

    assert not was_taken


@pytest.mark.parametrize("url", ["nonsense://x/y", "tgram://x", "json://"])
async def test_an_address_that_apprise_does_not_know_takes_nothing(url: str) -> None:
    was_taken = await send(make_sink(url), "title", "text")

    assert not was_taken


def test_a_digest_is_short_whatever_it_holds() -> None:
    title, text = make_digest(1000)

    assert len(title) < 80
    assert len(text) <= 1500 + len(PUBLIC_URL) + 10
    assert text.splitlines()[0].startswith("1000 dead jobs: ")
    assert text.splitlines()[0].endswith(" and 995 more")


def test_a_label_keeps_its_letters_and_loses_secrets_and_addresses() -> None:
    labels = ("ส่งเมล.ลูกค้า", "mail/person@example.com", "key-s3cr3t-value")

    _, text = digest([Alert(1, "s", "jobs_dead", label, 1) for label in labels], None, ("s3cr3t",))

    assert "ส่งเมล.ลูกค้า" in text
    assert not any(word in text for word in ("person", "s3cr3t"))
