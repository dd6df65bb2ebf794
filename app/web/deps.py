"""What a route asks for: the services of the process. Made at start-up, found through the application."""

from typing import Annotated, cast

from fastapi import Depends, Request

from app.jobs.services import Services


async def _services(request: Request) -> Services:  # not plain: FastAPI would use a thread
    return cast("Services", request.app.state.services)


Here = Annotated[Services, Depends(_services)]
