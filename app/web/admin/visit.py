"""One request for a page: who came, in which language, with which connection; and the page that goes back.

    request -> language -> session (else the login) -> form belongs to it -> show(visit) -> HTML, headers

Jinja is imported when the first page is asked for: a tick's cold start must not pay for it.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from app.db import Connection
from app.jobs.services import Services
from app.web.admin.assets import asset_paths
from app.web.admin.cookies import LANGUAGE, read_cookie
from app.web.admin.formats import make_formats, mark_code, spell_json
from app.web.admin.sessions import Session
from app.web.admin.speech import Speech, choose_speech
from app.web.guard import PARSED
from app.web.problems import Refused

if TYPE_CHECKING:
    from jinja2 import Environment

QUERY_CHARS = 500
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Vary": "Cookie, Accept-Language",
}
STRICT_TRANSPORT = "max-age=31536000"


@dataclass(frozen=True, slots=True)
class Door:
    """A visitor before anybody has asked who it is."""

    request: Request
    services: Services
    speech: Speech

    @classmethod
    def of(cls, request: Request) -> "Door":
        """Return the visitor behind *request*."""
        language = choose_speech(read_cookie(request, LANGUAGE), request.headers.get("accept-language", ""))
        return cls(request, request.app.state.services, language)

    @property
    def form(self) -> dict[str, str]:
        """The fields of the form that came, as the guard parsed them."""
        fields: dict[str, str] = self.request.scope.get(PARSED, {})
        return fields

    def query(self, name: str) -> str:
        """Return the one value of *name* in the address, empty when there is none."""
        values = self.request.query_params.getlist(name)
        if len(values) > 1 or any(len(value) > QUERY_CHARS for value in values):
            raise Refused(400, "The address names a value twice, or one that is too long.")
        return values[0].strip() if values else ""

    def render(self, template: str, status: int = 200, **facts: Any) -> Response:
        """Return the page *template* with the headers that every page has."""
        now = facts.pop("now", None) or datetime.now(UTC)
        shared: dict[str, Any] = {
            "say": self.speech.say,
            "count": self.speech.count,
            "speech": self.speech,
            "path": self.request.url.path,
            "assets": asset_paths(),
            "session": None,
            "now": now,
        }
        shared |= make_formats(self.speech, now)
        text = _templates().get_template(template).render(shared | facts)
        return HTMLResponse(text, status, self._headers())

    def _headers(self) -> dict[str, str]:
        public = self.services.settings.public_url or ""
        if self.request.url.scheme == "https" or public.startswith("https://"):
            return HEADERS | {"Strict-Transport-Security": STRICT_TRANSPORT}
        return HEADERS

    def send_to(self, path: str, **query: str) -> Response:
        """Return an answer that leads the browser on to *path*."""
        address = f"{path}?{urlencode(query)}" if query else path
        return RedirectResponse(address, 303, self._headers())


@dataclass(frozen=True, slots=True)
class Visit:
    """A visitor who is logged in; *connection* lasts as long as the request, *now* is the database's."""

    door: Door
    connection: Connection
    session: Session

    @property
    def services(self) -> Services:
        """What the process shares."""
        return self.door.services

    @property
    def form(self) -> dict[str, str]:
        """The fields of the form that came."""
        return self.door.form

    @property
    def speech(self) -> Speech:
        """The reader's language."""
        return self.door.speech

    @property
    def place(self) -> dict[str, Any]:
        """The parts of the address that the route names."""
        return self.door.request.path_params

    @property
    def now(self) -> datetime:
        """The time by the database's clock."""
        return self.session.now

    def query(self, name: str) -> str:
        """Return the one value of *name* in the address."""
        return self.door.query(name)

    def render(self, template: str, status: int = 200, **facts: Any) -> Response:
        """Return the page *template*."""
        return self.door.render(template, status, now=self.now, session=self.session, **facts)

    def send_to(self, path: str, **query: str) -> Response:
        """Return an answer that leads the browser on."""
        return self.door.send_to(path, **query)


@lru_cache(maxsize=1)
def _templates() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - only a page pays for Jinja

    made = Environment(
        loader=PackageLoader("app.web.admin"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {"json": spell_json, "code": mark_code}
    return made
