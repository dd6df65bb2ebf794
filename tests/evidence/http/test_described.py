"""What our OpenAPI describes is what the service does: requests made from it, right ones and wrong ones, get no 5xx.

schemathesis draws the requests, seeded by the operation's name; the real server answers them.
"""

import json
from collections import Counter
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.core import NOT_SET

from app.web.gates import routes_of
from app.web.problems import MEDIA_TYPE, PROBLEM_SCHEMA
from tests.evidence.http.conftest import Serve
from tests.evidence.http.tokens import application, bearer, token_for
from tests.web.serving import Serving

SHORT, NIGHTLY = 6, 300
WRONG = {400, 404, 409, 415, 422}
# 503 is what a monitor asks for by max_age_seconds: the last tick is older.
RIGHT = {"/api/cron/status": {200, 503}}
MODES = {"right": GenerationMode.POSITIVE, "wrong": GenerationMode.NEGATIVE}


def described() -> list[Any]:
    """Return every operation that the API's own description names."""
    schema: Any = schemathesis.openapi.from_dict(application().openapi())
    return [found.ok() for found in schema.get_all_operations()]


def has_input(operation: Any) -> bool:
    return bool(list(operation.iter_parameters()) or operation.body)


def send_all(serving: Serving, operation: Any, mode: GenerationMode, many: int) -> Counter[int]:
    """Send *many* requests that fit, or do not fit, what is described, and return how they were answered."""
    statuses: Counter[int] = Counter()
    headers, session = bearer(token_for(operation.path)), requests.Session()

    @seed(f"{operation.method} {operation.path}")
    @settings(
        max_examples=many,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(generation_mode=mode))
    def send(case: Any) -> None:
        answer = case.call(base_url=serving.url, session=session, headers=headers, allow_redirects=False)
        statuses[answer.status_code] += 1
        check(operation, case, answer)

    send()
    return statuses


def check(operation: Any, case: Any, answer: Any) -> None:
    sent = (
        operation.method,
        operation.path,
        case.path_parameters,
        case.query,
        None if case.body is NOT_SET else case.body,
    )
    status, kind = answer.status_code, answer.headers["content-type"][0]
    assert status in {200, 201} | WRONG | RIGHT.get(operation.path, set()), (sent, answer.text)
    if status not in WRONG:
        assert kind.startswith(("application/json", "text/plain", "application/openmetrics-text")), (sent, kind)
        return
    problem = json.loads(answer.content)
    assert kind == MEDIA_TYPE, sent
    assert set(PROBLEM_SCHEMA["properties"]) <= set(problem), sent
    assert problem["status"] == status, sent


def test_every_route_of_the_api_is_described() -> None:
    app = application()
    hidden = {"/openapi.json", "/docs"}

    routes = {(method, route.path) for route, methods in routes_of(app.routes) for method in methods}
    shown = {(operation.method.upper(), operation.path) for operation in described()}

    expected = {
        (method, path.replace(":path}", "}"))
        for method, path in routes
        if method != "HEAD" and path not in hidden and not path.startswith("/admin")
    }
    assert shown == expected


def test_requests_made_from_the_description_are_answered_as_it_says(serve: Serve) -> None:
    _send_everything(serve(), SHORT)


@pytest.mark.nightly
def test_many_requests_made_from_the_description_are_answered_as_it_says(serve: Serve) -> None:
    _send_everything(serve(), NIGHTLY)


def _send_everything(serving: Serving, many: int) -> None:
    totals: dict[str, Counter[int]] = {name: Counter() for name in MODES}
    for operation in described():
        for name, mode in MODES.items():
            if name == "right" or has_input(operation):
                totals[name] += send_all(serving, operation, mode, many)

    print(f"requests from the description: {totals}")  # noqa: T201 - the figure of the nightly form
    assert sum(totals["right"][status] for status in (200, 201, 404)) >= totals["right"].total() / 2
    assert sum(totals["wrong"][status] for status in WRONG) >= totals["wrong"].total() / 2
    assert "request.failed" not in serving.log_text()
    assert "Traceback" not in serving.log_text()
