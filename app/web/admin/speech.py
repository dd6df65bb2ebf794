"""The languages of the pages: a text is written in English where it stands, and looked up in its reader's language.

    cookie, else Accept-Language, else English -> Speech -> say("Dead", ...)

To add a language is to add a dict beside `thai.py`. tests/admin/test_speech.py holds each one complete.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.web.admin.english import ENGLISH
from app.web.admin.thai import THAI

LANGUAGES: Mapping[str, tuple[str, Mapping[str, str]]] = {"en": ("English", ENGLISH), "th": ("ไทย", THAI)}
HEADER_CHARS = 1000


@dataclass(frozen=True, slots=True)
class Speech:
    """One reader's language."""

    code: str

    def say(self, text: str, **values: Any) -> str:
        """Return *text* in this language, the names in braces filled in; a text that is missing stays English."""
        found = LANGUAGES[self.code][1].get(text, text)
        return found.format(**values) if values else found

    def count(self, number: int, one: str, many: str, **values: Any) -> str:
        """Return *one* or *many* as *number* asks, with {n} filled in."""
        return self.say(one if number == 1 else many, n=f"{number:,}", **values)

    @property
    def others(self) -> list[tuple[str, str]]:
        """The languages to switch to, as code and name."""
        return [(code, name) for code, (name, _) in LANGUAGES.items() if code != self.code]


def choose_speech(cookie: str, accept_language: str) -> Speech:
    """Return the language that the *cookie* keeps, else the first of ours that the browser asks for."""
    if cookie in LANGUAGES:
        return Speech(cookie)
    asked = sorted(_asked(accept_language[:HEADER_CHARS]), reverse=True)
    return next((Speech(code) for _, _, code in asked if code in LANGUAGES), Speech("en"))


def _asked(header: str) -> list[tuple[float, int, str]]:
    """Return (weight, place from the end, language) of each part; one that cannot be read weighs nothing."""
    found = []
    for place, part in enumerate(header.split(",")):
        tag, _, weight = part.partition(";")
        try:
            quality = float(weight.strip().removeprefix("q=")) if weight else 1.0
        except ValueError:
            quality = 0.0
        if quality > 0:
            found.append((quality, -place, tag.strip().lower().split("-")[0]))
    return found
