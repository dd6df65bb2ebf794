"""The operator's pages: see it, read why, put it right. Server-rendered, for a keyboard, a phone, a reader of screens.

    /admin                      is it well, what waits, seven days as a chart
    /admin/jobs, /jobs/ID       lists by filter, what is done to many; one job and why it stands where it stands
    /admin/reminders, /bookings what is coming and what each booking gets; sent, skipped, failed, uncertain
    /admin/ticks, /schedule     each tick, and how regularly they come
    /admin/channels             which must wait, and the way to open one again

A GET changes nothing. A form is taken from a page of the same origin, with the session's own token. Nothing runs by
itself: the one script looks again only while the page is seen, and not for long.
"""

from fastapi import APIRouter
from starlette.routing import Route

from app.web.admin import booking, channels, job, jobs, login, overview, reminders, schedule, ticks
from app.web.admin.assets import send_asset
from app.web.admin.pages import form, open_page, page

ROUTES = (
    open_page("/admin/login", login.show_login),
    open_page("/admin/login", login.log_in, "POST"),
    open_page("/admin/language", login.set_language, "POST"),
    Route("/admin/assets/{name}", send_asset),
    form("/admin/logout", login.log_out),
    page("/admin", overview.show_overview),
    page("/admin/pulse", overview.show_pulse, is_a_person=False),
    page("/admin/jobs", jobs.show_jobs),
    form("/admin/jobs", jobs.search_jobs),
    form("/admin/bulk/{verb}", jobs.change_jobs),
    page("/admin/jobs/{job_id}", job.show_job),
    form("/admin/jobs/{job_id}/requeue", job.requeue_job),
    form("/admin/jobs/{job_id}/cancel", job.cancel_job),
    form("/admin/jobs/{job_id}/accept", job.accept_reminder),
    page("/admin/reminders", reminders.show_upcoming),
    page("/admin/reminders/{status}", reminders.show_reminders),
    page("/admin/bookings/{booking_id:path}", booking.show_booking),
    page("/admin/ticks", ticks.show_ticks),
    page("/admin/ticks/{tick_id}", ticks.show_tick),
    page("/admin/schedule", schedule.show_schedule),
    page("/admin/channels", channels.show_channels),
    form("/admin/channels/resume", channels.resume_channel),
    page("/admin/{rest:path}", login.show_nothing),
)

router = APIRouter()
router.routes.extend(ROUTES)
