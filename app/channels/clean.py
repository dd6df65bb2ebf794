"""Text from strangers, made fit for one line of a header or a page.

A name with a line break in it must neither inject a header nor stop its own reminder: it is cleaned, never
refused.
"""

import re
import unicodedata
from collections.abc import Iterator

BIDI_CONTROLS = dict.fromkeys([0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
BREAKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
SURROGATES = re.compile(r"[\ud800-\udfff]")
MARKS_MAX = 30  # the bound of Unicode's stream-safe text format, UAX 15
FLAG_LETTERS = range(0x1F1E6, 0x1F200)
MODIFIERS = (range(0x1F3FB, 0x1F400), range(0xE0020, 0xE0080), (0x0E33, 0x0EB3), range(0x1160, 0x1200))
JOINER = "\u200d"
ELLIPSIS = "\u2026"


def one_line(text: str | None) -> str:
    """Return *text* on one line: no control character, no direction override, no half of a surrogate pair."""
    whole = SURROGATES.sub("\ufffd", text or "")
    return BREAKS.sub(" ", whole.translate(BIDI_CONTROLS)).strip()


def subject_line(text: str) -> str:
    """Return *text* as the words of a subject: one line, and nothing in it that a mail program would decode."""
    return one_line(text).replace("=?", "= ?")


def clip(text: str, limit: int) -> str:
    """Cut *text* to *limit* code points, ellipsis included, never inside what people see as one character."""
    if len(text) <= limit:
        return text
    kept, length = [], 0
    for cluster in clusters(text):
        if length + len(cluster) > limit - 1:
            break
        kept.append(cluster)
        length += len(cluster)
    return "".join(kept).rstrip() + ELLIPSIS


def clusters(text: str) -> Iterator[str]:
    """Split *text* where a reader sees a new character; marks above the 30th on one letter are dropped."""
    held: list[str] = []
    for char in text:
        if held and not _continues(held, char):
            yield "".join(held)
            held = []
        if len(held) <= MARKS_MAX or not unicodedata.combining(char):
            held.append(char)
    if held:
        yield "".join(held)


def _continues(held: list[str], char: str) -> bool:
    """Say whether *char* belongs to the cluster *held*: the common rules of UAX 29, without its tables."""
    if unicodedata.category(char) in {"Mn", "Mc", "Me"} or char == JOINER or _is_modifier(char):
        return True
    if _is_flag(char):
        return len(held) == 1 and _is_flag(held[0])
    return held[-1] == JOINER


def _is_modifier(char: str) -> bool:
    """Skin tones, tags, the vowel AM of Thai and Lao, and Hangul that follows its first letter."""
    return any(ord(char) in block for block in MODIFIERS)


def _is_flag(char: str) -> bool:
    return ord(char) in FLAG_LETTERS
