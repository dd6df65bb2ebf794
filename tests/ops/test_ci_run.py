"""`.ci/run` fails whenever a part of it fails, and says which; tried with stand-ins for the tools that it calls."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ops.step import ROOT

LINE = "python3 -m venv .venv && .venv/bin/pip install -e '.[dev]' && .venv/bin/pytest"
TOOLS = ["ruff", "mypy", "lint-imports", "zizmor", "check-jsonschema", "hadolint", "squawk", "pytest", "dormouse"]

# Each tool notes its call; the one that $FAIL names fails, and pytest leaves a report and, if asked, a process.
STAND_IN = """#!/bin/sh
name=$(basename "$0")
echo "$name $*" >>"$CALLS"
if [ "$name" = pytest ]; then
  report=${PYTEST_ADDOPTS##*--junitxml=}
  printf '<testsuites><testcase classname="a" name="b">%s</testcase></testsuites>' "$CASE" >"$report"
  if [ -n "$LEAVE" ]; then setsid sleep 60 >/dev/null 2>&1 & echo $! >"$LEAVE"; fi
fi
[ "$name" != "$FAIL" ]
"""
PYTHON = """#!/bin/sh
[ "$1 $2" = "-m venv" ] || exec {python} "$@"
mkdir -p .venv/bin
for name in {tools} pip python; do cp ./stand-in .venv/bin/$name; done
"""

RunCi = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_ci(tmp_path: Path) -> RunCi:
    """Run a copy of the script in a small repository; keywords become its environment."""
    repository, programs = tmp_path / "repository", tmp_path / "bin"
    shutil.copytree(ROOT / ".ci", repository / ".ci")
    script = (ROOT / ".ci/run").read_text()
    assert script.count("\ninstall_programs\n") == 1
    (repository / ".ci/run").write_text(script.replace("\ninstall_programs\n", "\n"))
    (repository / "README.md").write_text(f"# Dormouse\n\n    {LINE}\n")
    programs.mkdir()
    for path, text in [
        (repository / "stand-in", STAND_IN),
        (programs / "python3", PYTHON.format(python=sys.executable, tools=" ".join([*TOOLS, "pip-audit"]))),
    ]:
        path.write_text(text)
        path.chmod(0o755)

    def run(**environment: str) -> "subprocess.CompletedProcess[str]":
        defaults = {"CALLS": str(tmp_path / "calls"), "CASE": "", "LEAVE": "", "FAIL": ""}
        return subprocess.run(
            ["bash", str(repository / ".ci/run")],
            env={"PATH": f"{programs}:{os.environ['PATH']}", **defaults, **environment},
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


def test_it_can_be_executed() -> None:
    assert (ROOT / ".ci/run").stat().st_mode & stat.S_IXUSR


def test_readme_holds_the_line_that_it_runs() -> None:
    lines = [line.strip().removeprefix("$ ") for line in (ROOT / "README.md").read_text().splitlines()]

    assert LINE in lines


def test_it_is_green_when_all_parts_are(run_ci: RunCi, tmp_path: Path) -> None:
    done = run_ci()

    assert done.returncode == 0, done.stdout + done.stderr
    calls = (tmp_path / "calls").read_text()
    assert [name for name in ["pip", *TOOLS] if f"{name} " not in calls] == []
    assert "pip install -e .[dev]" in calls
    assert "pytest -q --server=system tests/bookings" in calls
    assert "pytest -q --server=pgbouncer" in calls


@pytest.mark.parametrize("tool", TOOLS)
def test_one_failing_part_makes_it_red_and_the_others_still_run(run_ci: RunCi, tmp_path: Path, tool: str) -> None:
    done = run_ci(FAIL=tool)

    assert done.returncode == 1
    assert "!! failed: " in done.stdout
    calls = (tmp_path / "calls").read_text()
    assert [name for name in TOOLS if f"{name} " not in calls] == []


def test_an_environment_that_does_not_install_is_red_at_once(run_ci: RunCi) -> None:
    done = run_ci(FAIL="pip")

    assert done.returncode == 1
    assert "The environment failed" in done.stderr


def test_a_skipped_test_makes_it_red(run_ci: RunCi) -> None:
    done = run_ci(CASE='<skipped type="pytest.skip" message="no PgBouncer here"/>')

    assert done.returncode == 1
    assert "a::b: no PgBouncer here" in done.stdout


def test_an_expected_failure_is_no_skipped_test(run_ci: RunCi) -> None:
    done = run_ci(CASE='<skipped type="pytest.xfail" message="known"/>')

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_process_left_behind_makes_it_red_and_is_ended(run_ci: RunCi, tmp_path: Path) -> None:
    done = run_ci(LEAVE=str(tmp_path / "left"))

    assert done.returncode == 1
    assert "sleep 60" in done.stdout
    left = Path("/proc") / (tmp_path / "left").read_text().strip() / "cmdline"
    assert not left.exists() or left.read_bytes() == b""


def test_a_readme_without_the_line_makes_it_red(run_ci: RunCi, tmp_path: Path) -> None:
    (tmp_path / "repository/README.md").write_text("# Dormouse\n")

    done = run_ci()

    assert done.returncode == 1
    assert "README.md no longer holds the test line" in done.stderr


def test_nothing_is_left_in_the_temporary_folder(run_ci: RunCi, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    run_ci(TMPDIR=str(scratch))

    assert list(scratch.iterdir()) == []
