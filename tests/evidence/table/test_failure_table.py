"""README's failure table and the tests are in step: no row without a test that runs, no evidence without a row."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.readme.manual import page, table

TESTS = Path(__file__).resolve().parents[2]
EVIDENCE = TESTS / "evidence"
OURSELVES = Path(__file__).relative_to(TESTS)
REFERENCE = re.compile(r"`([\w/]+\.py)::(\w+)`( \(nightly\))?")
POINTS = {
    "a process": 6,
    "a connection": 3,
    "the database": 5,
    "the provider": 4,
    "the clock": 3,
    "the scheduler": 3,
    "a caller": 3,
}
OFF = re.compile(r"skip(?!if)|xfail")


def rows() -> list[list[str]]:
    return table("what fails")


def references() -> Iterator[tuple[str, str, bool]]:
    """Yield every test that the table names: its file, its name, and whether the table calls it nightly."""
    for *_, shown in rows():
        for file, name, nightly in REFERENCE.findall(shown):
            yield file, name, bool(nightly)


@cache
def found_in(path: Path) -> dict[str, list[str]]:
    """Return the tests of one file with their decorators, the file's own marks among them."""
    tree = ast.parse(path.read_text())
    marks = [
        ast.unparse(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]
    return {
        node.name: marks + [ast.unparse(each) for each in node.decorator_list]
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def is_off(decorators: list[str]) -> bool:
    """Say whether a test does not run: a condition is taken at night alone, where root may be needed."""
    return any(OFF.search(each) or ("skipif" in each and not is_nightly(decorators)) for each in decorators)


def is_nightly(decorators: list[str]) -> bool:
    """Say whether a test runs at night alone: one of its parameters may, and the others run always."""
    return any(re.fullmatch(r"pytest\.mark\.nightly", each) for each in decorators)


def evidence_files() -> list[Path]:
    return [path for path in sorted(EVIDENCE.rglob("test_*.py")) if path.relative_to(TESTS) != OURSELVES]


def test_the_table_has_thirty_rows_and_each_sort_of_failure() -> None:
    starts = [row[0] for row in rows()]

    assert len(starts) == len(set(starts)) >= 30
    assert {
        point: many for point, many in POINTS.items() if sum(start.startswith(point) for start in starts) < many
    } == {}


def test_every_row_says_what_happens_and_names_a_test() -> None:
    for what, happens, shown in rows():
        assert happens.endswith("."), what
        assert REFERENCE.search(shown), what
        assert REFERENCE.sub("", shown).replace(",", "").strip() == "", what


def test_every_test_that_is_named_exists_and_runs() -> None:
    wrong = []
    for file, name, nightly in references():
        path = TESTS / file
        decorators = found_in(path).get(name) if path.exists() else None
        if decorators is None:
            wrong.append((file, name, "is not there"))
        elif is_off(decorators):
            wrong.append((file, name, "is switched off"))
        elif is_nightly(decorators) != nightly:
            wrong.append((file, name, "is nightly, or is not"))
        elif any(word in call for call in _calls(path, name) for word in ("pytest.skip", "pytest.importorskip")):
            wrong.append((file, name, "skips itself"))

    assert wrong == []


def _calls(path: Path, name: str) -> list[str]:
    node = next(each for each in ast.parse(path.read_text()).body if getattr(each, "name", "") == name)
    return [ast.unparse(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)]


def test_every_file_of_evidence_has_a_row() -> None:
    named = {file for file, *_ in references()}

    assert [
        str(path.relative_to(TESTS)) for path in evidence_files() if str(path.relative_to(TESTS)) not in named
    ] == []


def test_every_nightly_form_has_its_line_and_its_command() -> None:
    lines = {path.strip("`") for *_, path in table("promise")}

    nightly = {f"tests/{path.relative_to(TESTS)}" for path in evidence_files() if "nightly" in path.read_text()}

    assert lines == nightly
    assert "`.venv/bin/pytest -n 0 -m nightly -s`" in page()


@pytest.mark.parametrize("path", evidence_files(), ids=lambda path: str(path.relative_to(EVIDENCE)))
def test_no_evidence_is_switched_off(path: Path) -> None:
    tests = found_in(path)

    assert tests
    assert [name for name, decorators in tests.items() if is_off(decorators)] == []
