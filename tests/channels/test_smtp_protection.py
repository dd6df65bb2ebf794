"""TLS that was asked for is never given up."""

from pathlib import Path

import pytest

from app.channels import check_channel, open_email
from app.channels.tls import tls_context
from app.errors import ChannelSuspended, NotSent, SendError
from tests.channels.messages import LETTER, settings_for
from tests.channels.smtp_server import make_certificate, smtp_server

NAMES = ("DNS:localhost", "IP:127.0.0.1")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("trusted"), *NAMES)


@pytest.fixture
def trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's certificate, known to OpenSSL as an authority."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.parent / "cert.pem"))
    tls_context.cache_clear()
    return certificate


@pytest.fixture(autouse=True)
def _forget_context() -> object:
    yield
    tls_context.cache_clear()


async def test_starttls_protects_login_and_message(trusted: Path) -> None:
    async with smtp_server(certificate=trusted) as server:
        await open_email(settings_for(f"smtp://user:pass@localhost:{server.port}")).send(LETTER, "key")

    assert server.protected == [True]
    assert server.verbs[:4] == ["EHLO", "STARTTLS", "EHLO", "AUTH"]


async def test_implicit_tls_protects_from_the_first_byte(trusted: Path) -> None:
    async with smtp_server(certificate=trusted, is_implicit=True) as server:
        await open_email(settings_for(f"smtps://user:pass@localhost:{server.port}")).send(LETTER, "key")

    assert server.protected == [True]
    assert "STARTTLS" not in server.verbs


async def test_a_server_that_offers_no_starttls_gets_nothing() -> None:
    async with smtp_server() as server:
        channel = open_email(settings_for(f"smtp://user:pass@127.0.0.1:{server.port}"))

        with pytest.raises(ChannelSuspended, match="STARTTLS"):
            await channel.send(LETTER, "key")

    assert set(server.verbs) <= {"EHLO", "GONE"}
    assert server.messages == []


@pytest.mark.parametrize(("reply", "expected"), [("454 4.7.0 not now", ChannelSuspended), ("501 no", ChannelSuspended)])
async def test_a_refused_starttls_gets_nothing(trusted: Path, reply: str, expected: type[SendError]) -> None:
    async with smtp_server({"STARTTLS": reply}, certificate=trusted) as server:
        channel = open_email(settings_for(f"smtp://user:pass@localhost:{server.port}"))

        with pytest.raises(expected):
            await channel.send(LETTER, "key")

    assert "AUTH" not in server.verbs
    assert server.messages == []


async def test_a_handshake_that_never_ends_means_not_sent() -> None:
    async with smtp_server({"EHLO": "250-loopback\r\n250 STARTTLS"}) as server:
        url = f"smtp://user:pass@localhost:{server.port}"
        channel = open_email(settings_for(url, tick_budget_seconds=1))

        with pytest.raises(NotSent):
            await channel.send(LETTER, "key")

    assert server.messages == []


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
async def test_a_certificate_from_nobody_suspends_the_channel(certificate: Path, scheme: str) -> None:
    async with smtp_server(certificate=certificate, is_implicit=scheme == "smtps") as server:
        channel = open_email(settings_for(f"{scheme}://user:pass@localhost:{server.port}"))

        with pytest.raises(ChannelSuspended, match="certificate"):
            await channel.send(LETTER, "key")

    assert "AUTH" not in server.verbs
    assert server.messages == []


async def test_a_certificate_for_another_name_suspends_the_channel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_certificate(tmp_path, "DNS:other.example.com")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    tls_context.cache_clear()
    async with smtp_server(certificate=other) as server:
        channel = open_email(settings_for(f"smtp://user:pass@localhost:{server.port}"))

        with pytest.raises(ChannelSuspended, match="certificate"):
            await channel.send(LETTER, "key")

    assert server.messages == []


async def test_a_server_that_speaks_no_tls_is_not_trusted_with_plain_text() -> None:
    async with smtp_server() as server:
        channel = open_email(settings_for(f"smtps://user:pass@localhost:{server.port}"))

        with pytest.raises(NotSent):
            await channel.send(LETTER, "key")

    assert server.messages == []


async def test_the_check_logs_in_and_sends_nothing(trusted: Path) -> None:
    async with smtp_server(certificate=trusted) as server:
        sentence = await check_channel(settings_for(f"smtp://user:pass@localhost:{server.port}"))

    assert "login" in sentence
    assert "AUTH" in server.verbs
    assert "MAIL" not in server.verbs


async def test_the_check_raises_as_a_send_would() -> None:
    async with smtp_server({"AUTH": "535 no"}) as server:
        with pytest.raises(ChannelSuspended):
            await check_channel(settings_for(f"smtp://user:pass@127.0.0.1:{server.port}?tls=none"))
