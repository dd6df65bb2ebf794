"""GET /api/cron/status: how the schedule stands, for any monitor that can send a token.

Any of the tokens opens it. The answer is 200 whenever it could be read, and `ok` says how it stands; a monitor that
only knows status codes asks for `?max_age_seconds=3600` and gets 503 when the last tick is older than that.
"""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import JSONResponse

from app import watch
from app.web.deps import Here
from app.web.problems import RESPONSES

router = APIRouter(responses=RESPONSES)

MaxAge = Annotated[float | None, Query(ge=1, le=31 * 86_400, allow_inf_nan=False)]


@router.get("/api/cron/status", response_model=None)
@router.head("/api/cron/status", response_model=None, include_in_schema=False)
async def status(services: Here, max_age_seconds: MaxAge = None) -> JSONResponse:
    """Return the age of the last tick, the gaps of a week, and what waits."""
    async with services.database.acquire() as connection:
        vitals = await watch.look(connection, [*services.settings.queues, "reminders"])
    problems = watch.judge(vitals, max_age_seconds or watch.LATE_SECONDS)
    is_late = max_age_seconds is not None and not {"no_tick", "tick_late"}.isdisjoint(problems)
    body = {"ok": not problems, "problems": problems, **vitals.as_json()}
    return JSONResponse(body, 503 if is_late else 200)
