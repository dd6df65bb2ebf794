"""The operator's pages: see it, read why, put it right. Server-rendered, for a keyboard, a phone, a reader of screens.

    /admin                      is it well, what waits, seven days as a chart
    /admin/jobs, /jobs/ID       lists by filter, what is done to many; one job and why it stands where it stands
    /admin/reminders, /bookings what is coming and what each booking gets; sent, skipped, failed, uncertain
    /admin/ticks, /schedule     each tick, and how regularly they come
    /admin/channels             which must wait, and the way to open one again

A GET changes nothing. A form is taken from a page of the same origin, with the session's own token. Nothing runs by
itself: the one script looks again only while the page is seen, and not for long.

The routes name their functions instead of importing them: a tick's cold start must not pay for any page.
"""

from functools import partial
from importlib import import_module

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


def _route(sort: str, path: str, name: str, method: str = "GET") -> Route:
    """Return the route to the function *name* of a module here; *sort* says who may come, as pages.serve tells."""

    async def endpoint(request: Request) -> Response:
        answer: Response = await import_module("app.web.admin.pages").serve(request, sort, name)
        return answer

    return Route(path, endpoint, methods=[method])


_open = partial(_route, "open")
_page = partial(_route, "page")
_form = partial(_route, "page", method="POST")

ROUTES = (
    _open("/admin/login", "login.show_login"),
    _open("/admin/login", "login.log_in", "POST"),
    _open("/admin/language", "login.set_language", "POST"),
    _open("/admin/assets/{name}", "assets.send_asset"),
    _form("/admin/logout", "login.log_out"),
    _page("/admin", "overview.show_overview"),
    _route("glance", "/admin/pulse", "overview.show_pulse"),
    _page("/admin/jobs", "jobs.show_jobs"),
    _form("/admin/jobs", "jobs.search_jobs"),
    _form("/admin/bulk/{verb}", "jobs.change_jobs"),
    _page("/admin/jobs/{job_id}", "job.show_job"),
    _form("/admin/jobs/{job_id}/requeue", "job.requeue_job"),
    _form("/admin/jobs/{job_id}/cancel", "job.cancel_job"),
    _form("/admin/jobs/{job_id}/accept", "job.accept_reminder"),
    _page("/admin/reminders", "reminders.show_upcoming"),
    _page("/admin/reminders/{status}", "reminders.show_reminders"),
    _page("/admin/bookings/{booking_id:path}", "booking.show_booking"),
    _page("/admin/ticks", "ticks.show_ticks"),
    _page("/admin/ticks/{tick_id}", "ticks.show_tick"),
    _page("/admin/schedule", "schedule.show_schedule"),
    _page("/admin/channels", "channels.show_channels"),
    _form("/admin/channels/resume", "channels.resume_channel"),
    _page("/admin/{rest:path}", "login.show_nothing"),
)

router = APIRouter()
router.routes.extend(ROUTES)
