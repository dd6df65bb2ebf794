"""POST /api/cron/tick: one bounded call of the machinery, for a scheduler that knows the secret.

The answer is the summary, with 200 whenever the machinery worked. A caller that hangs up changes nothing: the
tick runs to its end all the same.
"""

import re
from typing import Annotated

from fastapi import APIRouter, Header
from pydantic import Field
from pydantic_core import to_json
from starlette.responses import Response

from app import tick
from app.config import Settings
from app.errors import BadInput
from app.web.deps import Here
from app.web.fields import Body
from app.web.guard import GuardedRoute
from app.web.problems import RESPONSES

SOURCE = re.compile(r"[a-z0-9_-]{1,32}")
DEFAULT_SOURCE = "api"
BOUNDS = {"jobs": "tick_jobs", "reminders": "tick_reminders", "budget_seconds": "tick_budget_seconds"}

router = APIRouter(route_class=GuardedRoute, responses=RESPONSES)


class TickRequest(Body):
    """What a caller may ask of one tick; what is absent comes from the settings, which are the bounds."""

    jobs: int | None = Field(default=None, ge=0, le=10_000)
    reminders: int | None = Field(default=None, ge=0, le=10_000)
    budget_seconds: float | None = Field(default=None, ge=1, le=3000, allow_inf_nan=False)
    dry_run: bool = False


@router.post("/api/cron/tick", response_model=None)
async def run_tick(
    services: Here,
    asked: TickRequest | None = None,
    x_tick_source: Annotated[str, Header(max_length=1000)] = DEFAULT_SOURCE,
) -> Response:
    """Run one tick and answer with its summary."""
    budget = make_budget(services.settings, asked or TickRequest())
    source = x_tick_source if SOURCE.fullmatch(x_tick_source) else DEFAULT_SOURCE
    summary = await tick.run(services, budget, source)
    return Response(to_json(summary.as_dict()), media_type="application/json")


def make_budget(settings: Settings, asked: TickRequest) -> tick.Budget:
    """Return the budget of *settings* as *asked* narrows it; raise BadInput for more than they allow."""
    for name, setting in BOUNDS.items():
        value, bound = getattr(asked, name), getattr(settings, setting)
        if value is not None and value > bound:
            raise BadInput(f"{name}: at most {bound:g} are taken, as {setting.upper()} says")
    return tick.Budget(
        jobs=settings.tick_jobs if asked.jobs is None else asked.jobs,
        reminders=settings.tick_reminders if asked.reminders is None else asked.reminders,
        seconds=settings.tick_budget_seconds if asked.budget_seconds is None else asked.budget_seconds,
        is_dry_run=asked.dry_run,
    )
