"""The image is built from pinned parts, holds nothing secret, and runs as nobody with a PID 1 that hears."""

import json
import re

import pytest

from tests.ops.image import Stage, context, read_stages
from tests.ops.step import ROOT, Tool


@pytest.fixture
def stages() -> list[Stage]:
    return read_stages((ROOT / "Dockerfile").read_text())


def test_hadolint_finds_nothing(tool: Tool) -> None:
    found = tool("hadolint", "--failure-threshold", "style", "--format", "json", "Dockerfile")

    assert json.loads(found.stdout) == []
    assert found.returncode == 0


def test_both_stages_stand_on_one_base_pinned_by_digest(stages: list[Stage]) -> None:
    bases = {stage.base for stage in stages}

    assert len(bases) == 1
    assert re.fullmatch(r"python:3\.1\d\.\d+-slim-\w+@sha256:[0-9a-f]{64}", bases.pop())


def test_every_install_is_by_hash_from_wheels_or_takes_nothing_from_outside(stages: list[Stage]) -> None:
    commands = " && ".join(run for stage in stages for run in stage.all("RUN")).split(" && ")
    installs = [command for command in commands if "pip install" in command]

    assert len(installs) == 3
    for command in installs:
        assert "--no-deps" in command
        assert "--require-hashes" in command or command.endswith("--no-build-isolation --editable .")
        assert "--only-binary :all:" in command or command.endswith("--editable .")


def test_it_runs_as_nobody_by_number(stages: list[Stage]) -> None:
    (user,) = stages[-1].all("USER")

    assert user == "65532:65532"
    assert stages[-1].steps.index(("USER", user)) > max(
        place for place, (instruction, _) in enumerate(stages[-1].steps) if instruction in {"RUN", "COPY"}
    )


def test_the_command_is_json_so_that_the_server_itself_gets_the_signal(stages: list[Stage]) -> None:
    (command,) = stages[-1].all("CMD")

    assert json.loads(command) == ["dormouse", "serve"]
    assert stages[-1].all("ENTRYPOINT") == []
    assert stages[-1].all("STOPSIGNAL") == ["SIGTERM"]


def test_nothing_is_migrated_at_start(stages: list[Stage]) -> None:
    started = " ".join(stages[-1].all("CMD") + stages[-1].all("ENTRYPOINT"))

    assert "migrate" not in started


def test_the_last_stage_takes_only_the_environment_the_app_and_the_migrations(stages: list[Stage]) -> None:
    copied = [copy.split()[:2] for copy in stages[-1].all("COPY")]

    assert copied == [
        ["--from=build", "/venv"],
        ["--from=build", "/srv/dormouse/app"],
        ["--from=build", "/srv/dormouse/migrations"],
    ]


def test_no_secret_has_a_place_in_the_image(stages: list[Stage]) -> None:
    given = " ".join(value for stage in stages for value in stage.all("ENV") + stage.all("ARG"))

    assert not re.search(r"SECRET|TOKEN|PASSWORD|KEY|DATABASE_URL|EMAIL_URL|ALERT_URLS", given, re.IGNORECASE)


def test_the_context_is_denied_first_and_then_allowed_by_name() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]

    files = context()

    assert rules[0] == "*"
    assert {path.split("/")[0] for path in files} == {
        ".ci",
        "LICENSE",
        "README.md",
        "app",
        "migrations",
        "pyproject.toml",
        "requirements.txt",
    }
    assert [path for path in files if path.startswith(".ci/")] == [".ci/build-requirements.txt"]


def test_nothing_private_enters_the_context() -> None:
    files = context()

    private = re.compile(r"(^|/)(\.env|\.git|tests|__pycache__|id_\w+)|\.(pyc|pem|key|eml|pgpass)$")
    assert [path for path in files if private.search(path)] == []
    for path in files:
        content = (ROOT / path).read_bytes()
        assert b"PRIVATE KEY-----" not in content, path
