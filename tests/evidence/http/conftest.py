"""What the HTTP evidence shares: the real server on the test's database, with a token for each role."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.evidence.http.real import serve_really
from tests.evidence.http.tokens import ENVIRONMENT
from tests.web.serving import Serving

Serve = Callable[..., Serving]


@pytest.fixture
def serve(dsn: str, tmp_path: Path) -> Iterator[Serve]:
    """Start the server: `serve(POOL_MAX="2")`."""
    with ExitStack() as stack:

        def start(**settings: str) -> Serving:
            ours = {"DATABASE_URL": dsn, "OUTBOX_DIR": str(tmp_path / "outbox"), **ENVIRONMENT}
            return stack.enter_context(serve_really(tmp_path, ours | settings))

        yield start
