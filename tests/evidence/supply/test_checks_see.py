"""Each check of `.ci/run` finds nothing here, and finds the fault that is planted for it."""

import itertools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.evidence.supply.migration_sql import write_all

ROOT = Path(__file__).resolve().parents[3]
BIN = Path(sys.executable).parent
Run = Callable[..., "subprocess.CompletedProcess[str]"]

WORKFLOW = """
name: Bad
on: pull_request_target
permissions: write-all
jobs:
  bad:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: echo "${{ github.event.pull_request.title }}"
"""
DOCKERFILE = "FROM python:latest\nRUN sudo apt-get update && cd /tmp\nENV TOKEN=abc\n"
MIGRATION = """
BEGIN;
CREATE INDEX jobs_slow_idx ON jobs (kind);
ALTER TABLE jobs ALTER COLUMN kind TYPE varchar(10);
ALTER TABLE jobs ADD COLUMN shade text NOT NULL;
DROP TABLE ticks;
COMMIT;
"""
CODE = """
import pickle
import subprocess


def load(text, name, connection):
    subprocess.run(f"ls {name}", shell=True)
    connection.execute(f"SELECT id FROM jobs WHERE kind = '{name}'")
    assert name
    return pickle.loads(text)
"""

OURSELVES = Path(__file__)
EXCEPTION = re.compile(
    r"# noqa|# type: ignore|# pragma: no cover|\bsuppress\(|except( \(?(Base)?Exception\b.*)?:|mark\.(skip\b|xfail)"
)
REASON = re.compile(r"# noqa: [A-Z0-9, ]+ - \w|# (?!noqa|type: ignore|pragma)\w+ \S")
SILENT = """
    import httpx  # noqa: PLC0415
    found = route.path  # type: ignore[attr-defined]
    with contextlib.suppress(OSError):
    except Exception as error:
    except:
@pytest.mark.skip
"""
SPOKEN = """
    import httpx  # noqa: PLC0415 - a cold start must not pay for it
    found = route.path  # type: ignore[attr-defined]  # all routes have one
    with contextlib.suppress(OSError):  # it may be gone
    except Exception:
        await finish()  # what was begun still ends
    except ValueError:
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def start(name: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
        argv = [str(BIN / name), *map(str, arguments)]
        return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)

    return start


def test_squawk_finds_nothing_in_what_a_migration_sends(run: Run, tmp_path: Path) -> None:
    files = write_all(tmp_path)

    found = run("squawk", "--config", ".squawk.toml", "--reporter", "json", *files)

    assert (json.loads(found.stdout), found.returncode) == ([], 0), found.stdout
    assert files


def test_squawk_would_find_a_migration_that_holds_others_up(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.sql").write_text(MIGRATION)

    found = run("squawk", "--config", ".squawk.toml", "--reporter", "json", tmp_path / "bad.sql")

    rules = {each["rule_name"] for each in json.loads(found.stdout)}
    assert found.returncode != 0
    assert rules >= {
        "require-concurrent-index-creation",
        "changing-column-type",
        "adding-required-field",
        "ban-drop-table",
        "require-lock-timeout",
        "require-statement-timeout",
    }


def test_each_rule_that_squawk_leaves_out_has_its_reason() -> None:
    rules = re.search(r"excluded_rules = \[\n(.*?)\]", (ROOT / ".squawk.toml").read_text(), re.DOTALL)

    assert rules is not None
    lines = rules[1].splitlines()
    assert len(lines) == 3
    assert all(re.search(r'^    "[a-z-]+", +# \S+', line) for line in lines)


def test_zizmor_would_find_a_workflow_that_gives_itself_away(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".github/workflows").mkdir(parents=True)
    (tmp_path / ".github/workflows/bad.yml").write_text(WORKFLOW)

    found = run("zizmor", "--offline", "--persona=auditor", "--no-progress", "--format=json", tmp_path)

    audits = {each["ident"] for each in json.loads(found.stdout)}
    assert found.returncode != 0
    assert audits >= {
        "dangerous-triggers",
        "template-injection",
        "unpinned-uses",
        "excessive-permissions",
        "artipacked",
    }


def test_hadolint_would_find_an_image_that_is_pinned_to_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(DOCKERFILE)

    found = run("hadolint", "--failure-threshold", "style", "--format", "json", tmp_path / "Dockerfile")

    assert found.returncode != 0
    assert {each["code"] for each in json.loads(found.stdout)} >= {"DL3007", "DL3004"}


def test_ruff_would_find_what_bandit_would(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(CODE)

    found = run("ruff", "check", "--config", "pyproject.toml", "--output-format", "json", tmp_path / "bad.py")

    assert {each["code"] for each in json.loads(found.stdout)} >= {"S301", "S602", "S608", "S101"}


def test_no_file_of_the_program_switches_a_whole_check_off() -> None:
    texts = {path: path.read_text() for path in [*(ROOT / "app").rglob("*.py"), *(ROOT / "migrations").rglob("*.py")]}

    blanket = [
        str(path) for path, text in texts.items() if re.search(r"# (ruff|flake8): noqa|# noqa(?!:)|# nosec", text)
    ]

    assert blanket == []


def unexplained(text: str) -> list[str]:
    """Return the lines of a program that make an exception to a rule and do not say why, there or on the next line."""
    lines = [*text.splitlines(), ""]
    return [
        line.strip()
        for line, following in itertools.pairwise(lines)
        if EXCEPTION.search(line) and not REASON.search(line) and not REASON.search(following)
    ]


def test_every_exception_to_a_rule_says_why() -> None:
    files = [path for folder in ("app", "migrations", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]

    assert [f"{path}: {line}" for path in files if path != OURSELVES for line in unexplained(path.read_text())] == []


def test_an_exception_that_says_nothing_would_be_found() -> None:
    assert unexplained(SILENT) == [line.strip() for line in SILENT.splitlines() if line.strip()]
    assert unexplained(SPOKEN) == []


def test_a_pin_whose_hash_is_not_that_of_the_file_is_not_installed(run: Run, tmp_path: Path) -> None:
    text = (ROOT / "requirements.txt").read_text()
    block = re.search(r"^annotated-doc==.*?(?=^[a-z])", text, re.MULTILINE | re.DOTALL)
    assert block is not None
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt"
    good.write_text(block[0])
    bad.write_text(re.sub(r"sha256:[0-9a-f]{64}", f"sha256:{'0' * 64}", block[0]))
    options = ("install", "--require-hashes", "--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--target")

    taken = run("pip", *options, tmp_path / "packages", "--requirement", good)
    refused = run("pip", *options, tmp_path / "others", "--requirement", bad)

    assert taken.returncode == 0, taken.stderr
    assert refused.returncode != 0
    assert "DO NOT MATCH THE HASHES" in refused.stderr
    assert not (tmp_path / "others").exists() or not list((tmp_path / "others").iterdir())
    shutil.rmtree(tmp_path / "packages")
