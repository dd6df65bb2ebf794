"""From a route to a page: what stands between every address below /admin and the function that shows it.

    Door -> connection -> session (else the login) -> form token -> show(visit) -> answer, or the error as a page

    sort     who may come
    open     anyone: the function is given the Door
    page     who is logged in: the function is given the Visit
    glance   the same, but a script asks: it does not keep the session awake

A page is one function in one file; a form is sent to an address of its own, and leads on to a page.
"""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from importlib import import_module

from starlette.requests import Request
from starlette.responses import Response

from app.web.admin.cookies import SESSION, read_cookie
from app.web.admin.sessions import find_session
from app.web.admin.visit import Door, Visit
from app.web.problems import Refused, problem_for

Show = Callable[[Visit], Awaitable[Response]]
NOT_THIS_SESSION = "This form is not of this session: go back, reload the page and try again."


async def serve(request: Request, sort: str, name: str) -> Response:
    """Answer with the page that the function *name*, `module.function`, shows to whom *sort* admits."""
    door = Door.of(request)
    module, _, function = name.partition(".")
    show = getattr(import_module(f"app.web.admin.{module}"), function)
    try:
        if sort == "open":
            answer: Response = await show(door)
            return answer
        return await _admit(door, show, is_a_person=sort != "glance")
    except Exception as error:  # noqa: BLE001 - judged and, if nobody foresaw it, logged by problem_for
        return tell(door, error)


async def _admit(door: Door, show: Show, *, is_a_person: bool) -> Response:
    key, settings = read_cookie(door.request, SESSION), door.services.settings
    if not key:
        return _turn_away(door)
    async with door.services.database.acquire() as connection:
        session = await find_session(connection, key, settings.admin_token, is_a_person=is_a_person)
        if session is None:
            return _turn_away(door)
        if door.request.method == "POST" and not session.owns_form(door.form.get("form_token", "")):
            raise Refused(403, NOT_THIS_SESSION)
        return await show(Visit(door, connection, session))


def _turn_away(door: Door) -> Response:
    """Lead to the login and back. A link from another site brings no cookie: then the page calls itself once more."""
    request = door.request
    if request.method == "POST":
        return door.send_to("/admin/login")
    if request.headers.get("sec-fetch-site") == "cross-site":
        return door.render("arrive.html")
    return door.send_to("/admin/login", next=request.url.path)


def tell(door: Door, error: Exception) -> Response:
    """Return *error* as a page, with its status and headers."""
    problem = problem_for(error)
    answer = door.render(
        "error.html",
        problem.status,
        title=HTTPStatus(problem.status).phrase,
        code=problem.status,
        detail=problem.detail,
        error_id=problem.more.get("id"),
    )
    for name, value in problem.headers.items():
        answer.headers[name] = value
    return answer
