"""The two cookies of the pages: who is logged in, and which language they read.

Both are `__Host-` cookies: HTTPS only (browsers take loopback for safe), this host only, out of reach of scripts.
"""

from http.cookies import SimpleCookie

from starlette.requests import Request
from starlette.responses import Response

SESSION = "__Host-dormouse"
LANGUAGE = "__Host-dormouse-language"
YEAR_SECONDS = 31_536_000


def read_cookie(request: Request, name: str) -> str:
    """Return the value of cookie *name*, empty when there is none."""
    return request.cookies.get(name, "")


def set_cookie(response: Response, name: str, value: str, seconds: float) -> None:
    """Let the browser keep *value* as cookie *name* for *seconds*, 0 to forget it."""
    jar: SimpleCookie = SimpleCookie()
    jar[name] = value
    options = {"path": "/", "secure": True, "httponly": True, "samesite": "Strict", "max-age": int(seconds)}
    for option, setting in options.items():
        jar[name][option] = setting
    response.headers.append("Set-Cookie", jar[name].OutputString())
