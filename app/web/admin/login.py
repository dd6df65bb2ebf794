"""Coming and going: the form that takes ADMIN_TOKEN, the way out, and the language.

    token right -> new session, new key        token wrong -> a second's wait, then the form again

Guesses wait in one line of eight: a token of 32 characters falls to nobody at that pace, and the line's end is a
429, not a process that answers nothing else.
"""

import asyncio
import re

from starlette.responses import Response

from app.log import get_logger
from app.web.admin.cookies import LANGUAGE, SESSION, YEAR_SECONDS, read_cookie, set_cookie
from app.web.admin.sessions import LONGEST_SECONDS, close_session, find_session, open_session
from app.web.admin.speech import LANGUAGES
from app.web.admin.visit import Door, Visit
from app.web.gates import make_gates
from app.web.problems import Refused

HOME = "/admin"
WRONG_SECONDS = 1.0
PLACES = 8
LINE_SECONDS = 5.0
# Only a page of ours is a place to lead on to: no host, no scheme, no way up, however it is spelt.
SEGMENT = r"/(?!\.|%2[eE])[\w.:%~-]+"
OURS = re.compile(rf"/admin(?:(?!/login|/logout){SEGMENT}(?:{SEGMENT}){{0,8}})?", re.ASCII)


class Line:
    """Where logins wait: eight at a time are looked at."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(PLACES)

    async def __aenter__(self) -> None:
        try:
            async with asyncio.timeout(LINE_SECONDS):
                await self._places.acquire()
        except TimeoutError:
            raise Refused(429, "Too many logins at once: try again in a minute.", Retry_After="60") from None

    async def __aexit__(self, *_: object) -> None:
        self._places.release()


LINE = Line()


async def show_login(door: Door) -> Response:
    """Show the form, or lead on who is logged in already."""
    key, onward = read_cookie(door.request, SESSION), _ours(door.query("next"))
    if key and await _is_open(door, key):
        return door.send_to(onward)
    problem = None
    if door.query("kept") == "no" and not key:
        problem = door.speech.say("Your browser did not keep the cookie: open this page by https.")
    return door.render("login.html", onward=onward, problem=problem)


async def _is_open(door: Door, key: str) -> bool:
    async with door.services.database.acquire() as connection:
        token = door.services.settings.admin_token
        return await find_session(connection, key, token, is_a_person=False) is not None


async def log_in(door: Door) -> Response:
    """Open a session for who knows the token; everyone else waits."""
    onward = _ours(door.form.get("next", ""))
    async with LINE:
        if not _knows(door, door.form.get("token", "")):
            get_logger().warning("admin.login_refused")
            await asyncio.sleep(WRONG_SECONDS)
            problem = door.speech.say("This is not the token that ADMIN_TOKEN holds.")
            return door.render("login.html", 401, onward=onward, problem=problem)
    async with door.services.database.acquire() as connection:
        token = door.services.settings.admin_token
        old = read_cookie(door.request, SESSION)
        if old:
            await close_session(connection, old, token)
        session = await open_session(connection, token)
    get_logger().info("admin.logged_in")
    answer = door.send_to("/admin/login", next=onward, kept="no")
    set_cookie(answer, SESSION, session.key, LONGEST_SECONDS)
    return answer


def _knows(door: Door, given: str) -> bool:
    gates = make_gates(door.services.settings)
    return any(gate.opens(given.strip().encode()) for gate in gates if gate.is_of_pages)


def _ours(path: str) -> str:
    return path if OURS.fullmatch(path) else HOME


async def log_out(visit: Visit) -> Response:
    """End the session, here and in the browser."""
    await close_session(visit.connection, visit.session.key, visit.services.settings.admin_token)
    get_logger().info("admin.logged_out")
    answer = visit.send_to("/admin/login")
    set_cookie(answer, SESSION, "", 0)
    return answer


async def set_language(door: Door) -> Response:
    """Keep the language that was chosen, and lead back to the page it was chosen on."""
    code = door.form.get("language", "")
    if code not in LANGUAGES:
        raise Refused(422, "There is no such language.")
    back = door.form.get("back", "")
    answer = door.send_to("/admin/login" if back == "/admin/login" else _ours(back))
    set_cookie(answer, LANGUAGE, code, YEAR_SECONDS)
    return answer


async def show_nothing(visit: Visit) -> Response:
    """Say that there is no such page, to who is logged in: nobody else learns which there are."""
    if not visit.place["rest"]:
        return visit.send_to(HOME)
    raise Refused(404, "There is nothing at this address.")
