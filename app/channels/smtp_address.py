"""EMAIL_URL for a mail server, read into its parts.

    smtps://user:password@host       TLS from the first byte, port 465
    smtp://user:password@host        STARTTLS or nothing, port 587
    smtp://host?tls=none             plain text, port 25: only because it is written there

User and password are percent-encoded. No message repeats any part of the URL.
"""

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Literal
from urllib.parse import SplitResult, unquote, urlsplit

from app.errors import ConfigError

Security = Literal["implicit", "starttls", "none"]
PORTS: dict[Security, int] = {"implicit": 465, "starttls": 587, "none": 25}


@dataclass(frozen=True, repr=False)
class SmtpAddress:
    """Where the mail server is, how the way there is protected, and who we are."""

    host: str
    port: int
    security: Security
    user: str | None = None
    password: str | None = None


def parse_smtp_url(url: str) -> SmtpAddress:
    """Read *url*; raise ConfigError with every reason why it cannot be used."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigError(
            ["EMAIL_URL: cannot be read; percent-encode special characters in user and password"]
        ) from None
    security = _security(parts)
    user = None if parts.username is None else unquote(parts.username)
    password = None if parts.password is None else unquote(parts.password)
    problems = _problems(parts, security, user, password)
    if problems or security is None:
        raise ConfigError([f"EMAIL_URL: {problem}" for problem in problems])
    return SmtpAddress(parts.hostname or "", port or PORTS[security], security, user, password)


def is_loopback(host: str | None) -> bool:
    """Say whether *host* is this machine, so that plain text is read by nobody else."""
    try:
        return ip_address(host or "").is_loopback
    except ValueError:
        return host == "localhost"


def _security(parts: SplitResult) -> Security | None:
    """Return what scheme and query ask for; None when they contradict each other or say something else."""
    known: dict[tuple[str, str], Security] = {
        ("smtps", ""): "implicit",
        ("smtp", ""): "starttls",
        ("smtp", "tls=none"): "none",
    }
    return known.get((parts.scheme, parts.query))


def _problems(parts: SplitResult, security: Security | None, user: str | None, password: str | None) -> list[str]:
    found = []
    if security is None:
        found.append("after the ? only tls=none is known, and only for smtp://")
    if not parts.hostname:
        found.append("names no host")
    if parts.path not in {"", "/"} or parts.fragment:
        found.append("ends after the port; percent-encode / and # in user and password")
    if (user is None) != (password is None) or user == "":
        found.append("needs both a user and a password, or neither")
    if not f"{user or ''}{password or ''}".isprintable():
        found.append("has a control character in user or password")
    if security == "starttls" and parts.port == PORTS["implicit"]:
        found.append("port 465 speaks TLS from the first byte: write smtps://")
    if security == "none" and password is not None and not is_loopback(parts.hostname):
        found.append("a password needs TLS: drop ?tls=none, or write smtps://")
    return found
