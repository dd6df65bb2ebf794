"""A page's form: `name=value&name=value`, read as strictly as JSON is.

    Content-Type named -> bytes split at & and = -> percent-decoded -> UTF-8 -> a dict of texts

A browser that sends one of our own pages never trips on this. No name comes twice, nothing is guessed, and
multipart is never read: a form that could carry a file is a parser that nobody here needs.
"""

import re

from app.web.problems import Refused

FORM_BYTES = 16_384
FIELDS = 30
ACCEPT = "application/x-www-form-urlencoded"
FORM_TYPE = re.compile(rb"\s*application/x-www-form-urlencoded\s*(?:;\s*charset=\"?utf-8\"?\s*)?\Z", re.IGNORECASE)
LITERAL = re.compile(rb"(?:[A-Za-z0-9*._+~-]|%[0-9A-Fa-f]{2})*+\Z")
ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
# A text field may span lines; anything else below a space is no text.
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def check_form_type(content_type: bytes | None) -> None:
    """Raise Refused unless *content_type* names a form that a browser encodes as one line of text."""
    if content_type is None or not FORM_TYPE.match(content_type):
        raise Refused(415, f"Send a form with the header Content-Type: {ACCEPT}.", Accept=ACCEPT)


def parse_form(body: bytes) -> dict[str, str]:
    """Return the fields of *body*; raise Refused, 400, for what no browser sends."""
    pieces = body.split(b"&")
    if len(pieces) > FIELDS:
        raise Refused(400, f"The form has more than {FIELDS} fields.")
    fields: dict[str, str] = {}
    for piece in pieces:
        name, mark, value = piece.partition(b"=")
        if not mark or not name:
            raise Refused(400, "The form has a field without a name or a value.")
        key = _text(name)
        if key in fields:
            raise Refused(400, "The form has the same field twice.")
        fields[key] = _text(value)
    return fields


def _text(encoded: bytes) -> str:
    if not LITERAL.match(encoded):
        raise Refused(400, "The form is not encoded as a form.")
    raw = ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), encoded.replace(b"+", b" "))
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise Refused(400, "The form is not UTF-8.") from None
    if CONTROL.search(text):
        raise Refused(400, "The form holds a control character.")
    return text
