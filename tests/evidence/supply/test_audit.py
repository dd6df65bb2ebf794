"""The audit of the pins says what it is: clean, red, or blind; and blind is red where the advisories can be reached."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# Stands for pip-audit: it answers for the canary as $CANARY says and for the pins with the exit code $PINS.
STAND_IN = """#!/bin/sh
echo "$*" >>"$CALLS"
case "$*" in
  *canary.txt*)
    case "$*" in *"service $SOURCE "*) printf '%s' "$CANARY" ;; *) echo '{"dependencies": []}' ;; esac
    exit 1 ;;
  *) exit "$PINS" ;;
esac
"""
SEEN = json.dumps({"dependencies": [{"name": "jinja2", "version": "2.4.1", "vulns": [{"id": "PYSEC-2019-217"}]}]})
UNKNOWN = json.dumps({"dependencies": [{"name": "jinja2", "skip_reason": "not found"}]})

Audit = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def audit(tmp_path: Path) -> Audit:
    """Run `.ci/audit` in a small repository, with a stand-in for pip-audit."""
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    program = tmp_path / ".venv/bin/pip-audit"
    program.parent.mkdir(parents=True)
    program.write_text(STAND_IN)
    program.chmod(0o755)

    def run(canary: str, *, pins: int = 0, source: str = "pypi") -> "subprocess.CompletedProcess[str]":
        environment = {"PATH": os.environ["PATH"], "CALLS": str(tmp_path / "calls"), "SOURCE": source}
        environment |= {"CANARY": canary, "PINS": str(pins)}
        return subprocess.run(
            [str(tmp_path / ".ci/audit")], env=environment, capture_output=True, text=True, check=False, timeout=60
        )

    return run


def test_pins_without_a_finding_pass_once_the_canary_was_seen(audit: Audit, tmp_path: Path) -> None:
    done = audit(SEEN)

    calls = (tmp_path / "calls").read_text().splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(calls) == 2
    assert "--strict" in calls[1]
    assert "requirements.txt" in calls[1]


def test_a_finding_is_red(audit: Audit) -> None:
    done = audit(SEEN, pins=1)

    assert done.returncode == 1


@pytest.mark.parametrize("canary", ["", "no JSON", "[]", UNKNOWN])
def test_an_audit_that_does_not_see_the_canary_is_blind_and_looks_no_further(
    audit: Audit, tmp_path: Path, canary: str
) -> None:
    done = audit(canary)

    calls = (tmp_path / "calls").read_text().splitlines()
    assert done.returncode == 3
    assert "BLIND: nothing was audited." in done.stdout
    assert len(calls) == 2
    assert all("canary.txt" in call for call in calls)


def test_the_second_source_is_asked_when_the_first_is_blind(audit: Audit, tmp_path: Path) -> None:
    done = audit(SEEN, source="osv")

    assert done.returncode == 0
    assert "--strict --vulnerability-service osv" in (tmp_path / "calls").read_text()


@pytest.mark.parametrize(("where", "is_red"), [("", False), ("true", True)])
def test_blind_is_red_on_github_and_no_success_elsewhere(tmp_path: Path, where: str, is_red: bool) -> None:
    script = (ROOT / ".ci/run").read_text()
    body = script[script.index("audit() {") :].partition("\n}\n")[0] + "\n}\n"
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci/audit").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / ".ci/audit").chmod(0o755)
    code = f'set -euo pipefail\nblind=()\n{body}\nif audit; then echo "good ${{blind[*]}}"; else echo red; fi'

    done = subprocess.run(
        ["bash", "-c", code],
        env={"PATH": os.environ["PATH"], "GITHUB_ACTIONS": where},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == ("red" if is_red else "good Audit of the pins")
    assert script.count("printf '!! BLIND, neither good nor bad: %s\\n' \"${blind[@]}\"") == 1
