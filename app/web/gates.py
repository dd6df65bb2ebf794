"""Who may pass: which token opens which address, compared so that a wrong one learns nothing.

    /api/cron/...                  CRON_SECRET or CRON_SECRET_PREVIOUS
    /api/jobs, /api/bookings...    API_TOKEN; without one in the settings these addresses do not exist
    /api/cron/status               any of the tokens that are set
    /api/admin..., /metrics        ADMIN_TOKEN; without one they do not exist
    /admin...                      pages: a session that ADMIN_TOKEN opened; without one they do not exist
    OPEN                           anyone

A page takes no bearer and sends no challenge: its session is looked up behind the guard, where the database is
known. What can be judged without it is judged here: a page takes a form only from a page of the same origin.

An address with neither a gate nor a place among OPEN stops the start: forgetting one cannot open a door.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pydantic import SecretStr
from starlette.routing import BaseRoute, Route

from app.config import Settings
from app.web.problems import Refused

OPEN = ("/livez", "/readyz", "/openapi.json", "/docs")
ENCODINGS = ("utf-8", "latin-1")
BEARER = re.compile(rb"bearer +([^ ].*)", re.IGNORECASE | re.DOTALL)

Header = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Gate:
    """The addresses below *prefix* and the digests of the tokens that open them; without one they are off.

    Of pages, the token is asked for by the login form alone.
    """

    prefix: str
    digests: tuple[bytes, ...]
    is_of_pages: bool = False

    def covers(self, path: str) -> bool:
        """Say whether *path* lies behind this gate."""
        return path == self.prefix or path.startswith(f"{self.prefix}/")

    def check(self, headers: Iterable[Header]) -> None:
        """Raise Refused unless *headers* hold one bearer token that opens this gate."""
        if not self.digests:
            raise Refused(404, "There is nothing at this address.")
        if not self.is_of_pages and not self.opens(_bearer(headers)):
            raise Refused(401, "A bearer token that opens this address is needed.", WWW_Authenticate="Bearer")

    def opens(self, token: bytes) -> bool:
        """Say whether *token* is one of those that open this gate, in the same time for any answer."""
        given, opens = hashlib.sha256(token).digest(), False
        for digest in self.digests:
            # No early return: the time must not tell which token came near.
            opens = hmac.compare_digest(given, digest) | opens
        return opens


def make_gates(settings: Settings) -> tuple[Gate, ...]:
    """Return the gates that *settings* put up."""
    cron = digests_of(_text(settings.cron_secret), _text(settings.cron_secret_previous))
    producers = digests_of(_text(settings.api_token))
    operator = digests_of(_text(settings.admin_token))
    return (
        Gate("/api/cron", cron),
        Gate("/api/jobs", producers),
        Gate("/api/bookings", producers),
        Gate("/admin", operator, is_of_pages=True),
        Gate("/api/admin", operator),
        Gate("/metrics", operator),
        Gate("/api/cron/status", tuple({*cron, *producers, *operator})),
    )


def gate_of(gates: Iterable[Gate], path: str) -> Gate | None:
    """Return the gate before *path*: of those that cover it, the one with the longest prefix."""
    return max((gate for gate in gates if gate.covers(path)), key=lambda gate: len(gate.prefix), default=None)


def _text(secret: SecretStr | None) -> str:
    return "" if secret is None else secret.get_secret_value()


def digests_of(*tokens: str) -> tuple[bytes, ...]:
    """Return the digests to compare with; an empty token has none, and so opens nothing."""
    # A client may send a letter like é in either of the two encodings that headers have.
    spellings = {token.encode(encoding, "replace") for token in tokens if token for encoding in ENCODINGS}
    return tuple(hashlib.sha256(spelling).digest() for spelling in sorted(spellings))


def _bearer(headers: Iterable[Header]) -> bytes:
    """Return the token of the one Authorization header, empty when there is none or it is of another sort."""
    values = [value for name, value in headers if name == b"authorization"]
    match = BEARER.fullmatch(values[0].strip()) if len(values) == 1 else None
    return match[1] if match else b""


@dataclass(frozen=True, slots=True)
class Place:
    """One address: its template, the methods it takes, and the gate before it, None for an open one."""

    template: str
    pattern: re.Pattern[str]
    methods: frozenset[str]
    gate: Gate | None

    @property
    def is_page(self) -> bool:
        """Whether this address is for a person's browser: it takes forms, not JSON."""
        return self.gate is not None and self.gate.is_of_pages


def routes_of(found: Iterable[BaseRoute]) -> Iterator[tuple[Route, frozenset[str]]]:
    """Yield each of *found* with its methods; TypeError for one that no gate could stand before, such as a mount."""
    for route in found:
        if not isinstance(route, Route):
            raise TypeError(f"{route!r} is no route of one address: there is no gate for it")
        yield route, frozenset(route.methods or ("GET", "HEAD"))


def map_places(routes: Iterable[BaseRoute], gates: Sequence[Gate]) -> tuple[Place, ...]:
    """Return the places of *routes*, one an address; RuntimeError for one neither gated nor open."""
    places: dict[str, Place] = {}
    for route, methods in routes_of(routes):
        template = route.path
        gate = gate_of(gates, template)
        if gate is None and template not in OPEN:
            raise RuntimeError(f"{template} has no gate: name one in app/web/gates.py, or name it in OPEN")
        known = places[template].methods if template in places else frozenset()
        places[template] = Place(template, route.path_regex, known | methods, gate)
    return tuple(places.values())


def find_place(places: Sequence[Place], path: str) -> Place:
    """Return the place that *path* names; raise Refused when there is none."""
    for place in places:
        if place.pattern.match(path):
            return place
    raise Refused(404, "There is nothing at this address.")


def check_same_origin(headers: Iterable[Header]) -> None:
    """Raise Refused unless the browser says that a page of this very origin sent the request.

    Sec-Fetch-Site decides, and pages cannot forge it. A browser that does not send it must name our host as Origin.
    """
    values = {name: value for name, value in headers if name in (b"sec-fetch-site", b"origin", b"host")}
    site = values.get(b"sec-fetch-site")
    if site is None:
        host = values.get(b"host", b"")
        is_ours = host != b"" and values.get(b"origin", b"").partition(b"://")[2] == host
    else:
        is_ours = site == b"same-origin"
    if not is_ours:
        raise Refused(403, "A form is taken only from a page of this service, by a browser that says so.")
