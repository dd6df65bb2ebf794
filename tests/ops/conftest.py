"""What the ops tests ask for by name: far sides on loopback, the tick's step, this environment's tools."""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.ops.image import build, read_stages
from tests.ops.step import ROOT, Answer, FarSide, Step, serve


@pytest.fixture
def far_side() -> Iterator[Callable[..., FarSide]]:
    """Start services that give the answers passed."""
    with contextlib.ExitStack() as stack:

        def start(*answers: Answer) -> FarSide:
            side = FarSide(list(answers))
            stack.enter_context(serve(side))
            return side

        yield start


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The root folder that the Dockerfile's build stage leaves behind, built once and removed at the end."""
    folder = tmp_path_factory.mktemp("image")
    build(read_stages((ROOT / "Dockerfile").read_text())[0], folder)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def step(tmp_path: Path) -> Step:
    return Step(tmp_path)


@pytest.fixture
def tool() -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Run a program of this environment's own bin folder in the repository."""

    def run(name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        program = Path(sys.executable).parent / name
        found = str(program) if program.exists() else shutil.which(name)
        assert found is not None, f"{name} is not installed: pip install -e '.[dev]'"
        return subprocess.run([found, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)

    return run
