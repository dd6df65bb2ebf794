"""The workflows pass the strictest audit, follow GitHub's schema, and call the tick as promised."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.ops.step import ROOT, Tool

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def read(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load((ROOT / ".github" / name).read_text())
    return loaded


def steps(workflow: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for job in workflow["jobs"].values():
        yield from job["steps"]


def test_zizmor_finds_nothing_as_an_auditor(tool: Tool) -> None:
    found = tool("zizmor", "--offline", "--persona=auditor", "--no-progress", "--format=json", ".github")

    assert found.stdout.strip() == "[]"
    assert found.returncode == 0, found.stderr


def test_the_workflows_follow_the_schema(tool: Tool) -> None:
    found = tool("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *map(str, WORKFLOWS))

    assert found.returncode == 0, found.stdout + found.stderr
    assert len(WORKFLOWS) == 2


@pytest.mark.parametrize(
    ("schema", "file"),
    [("vendor.dependabot", ".github/dependabot.yml"), ("vendor.compose-spec", "compose.yaml")],
)
def test_the_other_files_follow_theirs(tool: Tool, schema: str, file: str) -> None:
    found = tool("check-jsonschema", "--builtin-schema", schema, file)

    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize(
    ("name", "actions"),
    [
        ("cron-tick.yml", []),
        ("ci.yml", ["actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02"]),
    ],
)
def test_a_workflow_runs_only_pinned_code_of_others_and_has_no_right_by_default(name: str, actions: list[str]) -> None:
    workflow = read(f"workflows/{name}")

    assert workflow["permissions"] == {}
    assert [step["uses"] for step in steps(workflow) if "uses" in step] == actions
    assert [step for step in steps(workflow) if "${{" in step.get("run", "")] == []
    assert all(job["timeout-minutes"] <= 30 for job in workflow["jobs"].values())


def test_the_tick_is_called_at_odd_minutes_every_quarter_of_an_hour() -> None:
    schedule = read("workflows/cron-tick.yml")["on"]

    assert schedule["schedule"] == [{"cron": "7,22,37,52 * * * *"}]
    assert "workflow_dispatch" in schedule


def test_a_run_of_the_tick_is_never_cancelled_skipped_or_forgotten() -> None:
    workflow = read("workflows/cron-tick.yml")

    job = workflow["jobs"]["tick"]
    assert workflow["concurrency"]["cancel-in-progress"] is False
    assert job["timeout-minutes"] == 5
    assert "if" not in job
    assert [step for step in job["steps"] if "if" in step or "continue-on-error" in step] == []


def test_all_calls_of_a_run_end_before_the_job_is_killed() -> None:
    (step,) = read("workflows/cron-tick.yml")["jobs"]["tick"]["steps"]

    bounds = {name: int(value) for name, value in re.findall(r'"\$\{([A-Z_]+):-(\d+)\}"', step["run"])}

    assert bounds["RUN_SECONDS"] < 5 * 60
    assert bounds["WAKE_SECONDS"] >= 60
    assert bounds["CALL_SECONDS"] >= 60 + 25 + 1
    assert bounds["CALL_SECONDS"] < bounds["RUN_SECONDS"]
    assert bounds["MAX_CALLS"] == 10


def test_secrets_and_the_one_variable_reach_the_step_by_its_environment_only() -> None:
    text = (ROOT / ".github/workflows/cron-tick.yml").read_text()

    found = re.findall(r"\$\{\{ (.*?) \}\}", text)

    assert found == ["secrets.TICK_URL", "secrets.CRON_SECRET", "vars.PUBLIC_URL"]


def test_one_job_stands_for_all_checks_and_fails_when_any_did() -> None:
    jobs = read("workflows/ci.yml")["jobs"]

    assert set(jobs["green"]["needs"]) == set(jobs) - {"green"}
    assert jobs["green"]["if"] == "always()"


def test_dependabot_lets_releases_ripen_for_a_week() -> None:
    updates = read("dependabot.yml")["updates"]

    assert {update["package-ecosystem"] for update in updates} == {"pip", "docker", "github-actions"}
    assert all(update["cooldown"]["default-days"] >= 7 for update in updates)
