"""What Resend's answers, and its silences, mean for a message."""

import base64
import json

import pytest

from app.channels import check_channel, open_email
from app.channels.resend import as_body
from app.errors import ChannelSuspended, MaybeSent, NotSent, RecipientRefused, SendError
from tests.channels.http_server import DROP, HANG, answer, http_server
from tests.channels.messages import LETTER, letter, settings_for

KEY = "re_canary_123"
LATER = {"retry_after": "7"}
DATES = {"date": "Mon, 30 Nov 2026 10:00:00 GMT", "retry_after": "Mon, 30 Nov 2026 10:02:00 GMT"}
ROWS = [
    (400, "validation_error", {}, RecipientRefused, None),
    (400, "invalid_idempotency_key", {}, RecipientRefused, None),
    (401, "missing_api_key", {}, ChannelSuspended, 900),
    (401, "restricted_api_key", {}, ChannelSuspended, 900),
    (403, "invalid_api_key", {}, ChannelSuspended, 900),
    (403, "validation_error", {}, ChannelSuspended, 900),
    (404, "not_found", {}, ChannelSuspended, 900),
    (405, "method_not_allowed", {}, ChannelSuspended, 900),
    (408, "", {}, MaybeSent, None),
    (409, "invalid_idempotent_request", {}, RecipientRefused, None),
    (409, "concurrent_idempotent_requests", {}, NotSent, None),
    (409, "concurrent_idempotent_requests", LATER, NotSent, 7),
    (413, "", {}, RecipientRefused, None),
    (422, "missing_required_field", {}, RecipientRefused, None),
    (422, "invalid_attachment", {}, RecipientRefused, None),
    (422, "invalid_from_address", {}, ChannelSuspended, 900),
    (429, "rate_limit_exceeded", {}, ChannelSuspended, 60),
    (429, "rate_limit_exceeded", LATER, ChannelSuspended, 7),
    (429, "rate_limit_exceeded", DATES, ChannelSuspended, 120),
    (429, "rate_limit_exceeded", {"ratelimit_reset": "3"}, ChannelSuspended, 3),
    (429, "rate_limit_exceeded", {"retry_after": "soon", "ratelimit_reset": "3"}, ChannelSuspended, 3),
    (429, "rate_limit_exceeded", {"retry_after": "0"}, ChannelSuspended, 1),
    (429, "rate_limit_exceeded", {"retry_after": "-5"}, ChannelSuspended, 60),
    (429, "rate_limit_exceeded", {"retry_after": "999999999"}, ChannelSuspended, 86_400),
    (429, "", {}, ChannelSuspended, 60),
    (429, "daily_quota_exceeded", LATER, ChannelSuspended, 3 * 3600),
    (429, "daily_quota_exceeded", {"retry_after": "40000"}, ChannelSuspended, 40_000),
    (429, "monthly_quota_exceeded", {}, ChannelSuspended, 86_400),
    (500, "application_error", {}, MaybeSent, None),
    (502, "", {}, MaybeSent, None),
    (503, "", LATER, MaybeSent, None),
    (504, "", {}, MaybeSent, None),
    (302, "", {"location": "https://example.com/"}, ChannelSuspended, 900),
    (307, "", {"location": "https://example.com/"}, ChannelSuspended, 900),
]


@pytest.mark.parametrize(("status", "name", "headers", "expected", "delay"), ROWS)
async def test_each_answer_has_its_meaning(
    status: int, name: str, headers: dict[str, str], expected: type[SendError], delay: float | None
) -> None:
    body = {"statusCode": status, "name": name, "message": f"for guest@example.org with {KEY}"}
    async with http_server(answer(status, body, **headers)) as server:
        channel = open_email(settings_for(f"resend://{KEY}@", resend_base_url=server.url))

        with pytest.raises(SendError) as caught:
            await channel.send(LETTER, "key")

    assert type(caught.value) is expected
    assert getattr(caught.value, "delay", None) == delay
    assert str(status) in str(caught.value)
    assert "guest" not in str(caught.value)
    assert KEY not in f"{caught.value} {channel!r}"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"[]", b'"x"', b"<html>hello</html>", b'{"id": 7}', b'{"id": ""}', b"\xff\xfe", b"[" * 60_000],
)
async def test_a_success_without_an_id_is_not_believed(body: bytes) -> None:
    async with http_server(answer(200, body or b" ")) as server:
        channel = open_email(settings_for(f"resend://{KEY}@", resend_base_url=server.url))

        with pytest.raises(MaybeSent):
            await channel.send(LETTER, "key")


async def test_an_error_name_that_is_not_a_name_is_not_repeated() -> None:
    body = {"name": "guest@example.org is bad", "message": "x"}
    async with http_server(answer(422, body)) as server:
        channel = open_email(settings_for(f"resend://{KEY}@", resend_base_url=server.url))

        with pytest.raises(RecipientRefused) as caught:
            await channel.send(LETTER, "key")

    assert str(caught.value) == "resend: 422"


async def test_a_connection_dropped_after_the_request_means_maybe_sent() -> None:
    async with http_server(DROP) as server:
        channel = open_email(settings_for(f"resend://{KEY}@", resend_base_url=server.url))

        with pytest.raises(MaybeSent):
            await channel.send(LETTER, "key")


async def test_silence_after_the_request_means_maybe_sent() -> None:
    async with http_server(HANG) as server:
        settings = settings_for(f"resend://{KEY}@", resend_base_url=server.url, tick_budget_seconds=1)

        with pytest.raises(MaybeSent):
            await open_email(settings).send(LETTER, "key")


async def test_half_an_answer_means_maybe_sent() -> None:
    async with http_server(b'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"id": "abc"}') as server:
        channel = open_email(settings_for(f"resend://{KEY}@", resend_base_url=server.url))

        with pytest.raises(MaybeSent):
            await channel.send(LETTER, "key")


async def test_no_connection_means_not_sent() -> None:
    async with http_server(b"") as server:
        url = server.url

    with pytest.raises(NotSent):
        await open_email(settings_for(f"resend://{KEY}@", resend_base_url=url)).send(LETTER, "key")


async def test_a_server_that_speaks_no_tls_means_not_sent() -> None:
    async with http_server(answer(200, {"id": "abc-1"})) as server:
        url = server.url.replace("http://", "https://")
        settings = settings_for(f"resend://{KEY}@", resend_base_url=url, tick_budget_seconds=1)

        with pytest.raises(NotSent):
            await open_email(settings).send(LETTER, "key")

    assert server.requests == []


async def test_an_answer_without_end_is_read_to_a_limit() -> None:
    flood = b"HTTP/1.1 500 X\r\ncontent-length: 90000000\r\n\r\n" + b"x" * 1_000_000
    async with http_server(flood) as server:
        channel = open_email(settings_for(f"resend://{KEY}@", resend_base_url=server.url))

        with pytest.raises(MaybeSent, match="500"):
            await channel.send(LETTER, "key")


async def test_the_request_is_what_resend_documents() -> None:
    async with http_server(answer(200, {"id": "abc-1"})) as server:
        channel = open_email(settings_for(f"resend://{KEY}@", resend_base_url=f"{server.url}/"))
        provider_id = await channel.send(LETTER, "key-1")

    (request,) = server.requests
    (attachment,) = request.json["attachments"]
    assert provider_id == "abc-1"
    assert request.line == "POST /emails HTTP/1.1"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["idempotency-key"] == "key-1"
    assert request.headers["user-agent"] == "dormouse"
    assert request.headers["content-type"] == "application/json"
    assert {name: request.json[name] for name in ("from", "to", "subject", "text", "html")} == {
        "from": LETTER.sender,
        "to": [LETTER.to],
        "subject": LETTER.subject,
        "text": LETTER.text,
        "html": LETTER.html,
    }
    assert attachment["filename"] == "invite.ics"
    assert attachment["content_type"] == "text/calendar"
    assert base64.b64decode(attachment["content"]).decode() == LETTER.ics


async def test_a_retry_sends_the_same_bytes_under_the_same_key() -> None:
    async with http_server(answer(200, {"id": "abc-1"})) as server:
        channel = open_email(settings_for(f"resend://{KEY}@", resend_base_url=server.url))
        await channel.send(LETTER, "key-1")
        await channel.send(type(LETTER).from_json(LETTER.as_json()), "key-1")

    first, second = server.requests
    assert first.body == second.body
    assert first.headers == second.headers


async def test_proxy_variables_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async with http_server(answer(200, {"id": "proxied"})) as proxy, http_server(answer(200, {"id": "x"})) as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        channel = open_email(settings_for(f"resend://{KEY}@", resend_base_url=server.url))
        provider_id = await channel.send(LETTER, "key")

    assert provider_id == "x"
    assert proxy.requests == []


@pytest.mark.parametrize(("status", "name"), [(200, ""), (401, "restricted_api_key")])
async def test_the_check_sends_nothing_and_accepts_a_key_that_may_only_send(status: int, name: str) -> None:
    async with http_server(answer(status, {"name": name})) as server:
        sentence = await check_channel(settings_for(f"resend://{KEY}@", resend_base_url=server.url))

    (request,) = server.requests
    assert sentence == "Resend takes our key."
    assert request.line == "GET /domains HTTP/1.1"


async def test_the_check_refuses_a_wrong_key() -> None:
    async with http_server(answer(403, {"name": "invalid_api_key"})) as server:
        with pytest.raises(ChannelSuspended):
            await check_channel(settings_for(f"resend://{KEY}@", resend_base_url=server.url))


def test_a_message_without_an_invitation_sends_no_attachment() -> None:
    assert "attachments" not in json.loads(as_body(letter(ics="")))
