"""These tests start the others on another server: on one that was chosen by hand there is nothing to start."""

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if config.getoption("--server") != "embedded" else None
