"""What may be stored of an error: its class and its words, without secrets, addresses and what PostgreSQL refuses."""

import re
from typing import Any

ERROR_CHARACTERS = 500
ADDRESS = re.compile(r"[^\s@<>\"'(),;:]+@[^\s@<>\"'(),;:]+\.[^\s@<>\"'(),;:]+")
CREDENTIALS = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^/@\s]+@", re.IGNORECASE)
QUERY = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s?]+)\?\S+", re.IGNORECASE)
NAMED_SECRET = re.compile(
    r"\b((?:bearer|basic)\s+|[\w-]*(?:token|secret|password|passwd|api[_-]?key)[\w-]*[\"']?\s*[=:]\s*[\"']?)[^\s\"',;&]+",
    re.IGNORECASE,
)
KEY_SHAPES = re.compile(r"\b(?:re|sk|pk|rk|ghp|gho|xox[abp])[_-][\w-]{8,}|\bbot\d+:[\w-]{20,}")
UNSTORABLE = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]+")


def error_text(error: BaseException, secrets: tuple[str, ...] = ()) -> str:
    """Return `Class: message` of *error*, scrubbed and cut, fit for `last_error`."""
    name, words = type(error).__name__, _words(error)
    return scrub(f"{name}: {words}" if words else name, secrets)


def permanent_text(error: BaseException, secrets: tuple[str, ...] = ()) -> str:
    """Return the reason that *error* gives, whatever a handler has put there, fit for `last_error`."""
    reason = getattr(error, "reason", None)
    return scrub(_words(error if reason is None else reason), secrets) or type(error).__name__


def _words(thing: Any) -> str:
    try:
        return str(thing)
    except BaseException as unreadable:  # noqa: BLE001 - a user's __str__ may do anything, and the job must end
        return f"its message could not be read ({type(unreadable).__name__})"


def scrub(text: str, secrets: tuple[str, ...] = ()) -> str:
    """Return *text* on one line, at most 500 characters, with *secrets*, credentials and e-mail addresses masked."""
    for secret in secrets:
        text = text.replace(secret, "[secret]")
    text = text[: ERROR_CHARACTERS * 8]
    text = CREDENTIALS.sub(r"\1[secret]@", text)
    text = QUERY.sub(r"\1?[query]", text)
    text = NAMED_SECRET.sub(r"\1[secret]", text)
    text = KEY_SHAPES.sub("[secret]", text)
    text = ADDRESS.sub("[address]", text)
    text = UNSTORABLE.sub(" ", text).strip()
    return text if len(text) <= ERROR_CHARACTERS else text[: ERROR_CHARACTERS - 1] + "\u2026"
