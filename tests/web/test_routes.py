"""What every route keeps to, read from the application itself: no thread, no number without bounds, no form."""

import ast
import importlib.util
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

import app.web
from app.config import Settings
from app.main import create_app

HEAVY = ("typer", "alembic", "sqlalchemy", "jinja2", "babel", "icalendar", "httpx", "aiosmtplib", "apprise")


@pytest.fixture
def app_with_docs(settings: Callable[..., Settings]) -> FastAPI:
    values = {"database_url": "postgresql://nobody@127.0.0.1:1/none", "api_token": "a" * 40, "openapi": True}
    return create_app(settings(**values))


def test_no_route_and_no_dependency_runs_in_a_thread(app_with_docs: FastAPI) -> None:
    routes = [route for route in app_with_docs.routes if isinstance(route, APIRoute)]

    calls = [call for route in routes for call in _calls(route.dependant)]

    assert len(routes) >= 7
    assert all(inspect.iscoroutinefunction(call) for call in calls)


def _calls(dependant: Dependant) -> Iterator[Any]:
    yield dependant.call
    for inner in dependant.dependencies:
        yield from _calls(inner)


def test_no_number_that_a_request_may_hold_is_without_bounds(app_with_docs: FastAPI) -> None:
    numbers = list(_numbers(app_with_docs.openapi()))

    assert len(numbers) >= 6
    assert [number for number in numbers if not {"minimum", "maximum"} <= set(number)] == []


def _numbers(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if str(node.get("type")) in {"integer", "number"}:
            yield node
        node = list(node.values())
    if isinstance(node, list):
        for item in node:
            yield from _numbers(item)


def test_no_text_that_a_request_may_hold_is_without_an_end(app_with_docs: FastAPI) -> None:
    schemas = app_with_docs.openapi()["components"]["schemas"]
    requests = [schemas[name] for name in ("JobRequest", "BookingRequest", "Batch", "TickRequest")]

    texts = [text for schema in requests for text in _texts(schema)]

    assert len(texts) >= 10
    assert [text for text in texts if not {"maxLength", "format", "enum", "examples"} & set(text)] == []


def _texts(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if node.get("type") == "string":
            yield node
        node = list(node.values())
    if isinstance(node, list):
        for item in node:
            yield from _texts(item)


def test_no_form_can_be_parsed() -> None:
    assert importlib.util.find_spec("multipart") is None
    assert importlib.util.find_spec("python_multipart") is None


def test_no_route_leaves_work_behind_its_answer() -> None:
    sources = "".join(path.read_text() for path in Path(app.web.__file__).parent.glob("*.py"))

    names = {node.id for node in ast.walk(ast.parse(sources)) if isinstance(node, ast.Name)}

    assert not names & {"BackgroundTasks", "BackgroundTask"}


def test_the_application_imports_nothing_that_a_tick_does_not_need() -> None:
    code = f"import sys, app.main; print([name for name in {HEAVY} if name in sys.modules])"

    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert found.stdout.strip() == "[]"
