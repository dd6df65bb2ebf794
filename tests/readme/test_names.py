"""What the manual names exists: files, tests, headings; its two commands are those that `.ci/run` runs."""

import re

import pytest

from tests.readme.manual import PAGES, ROOT, in_code, page, shell_lines

FOLDERS = ("app", "tests", "benchmarks", "migrations", "docs", ".github", ".ci")
FIRST = "python3 -m venv .venv && .venv/bin/pip install -e '.[dev]' && .venv/bin/dormouse demo"
SECOND = "python3 -m venv .venv && .venv/bin/pip install -e '.[dev]' && .venv/bin/pytest"


def test_the_two_commands_of_a_newcomer_stand_alone_in_their_lines() -> None:
    lines = shell_lines()

    assert lines[lines.index(FIRST) + 1] == SECOND


def test_ci_runs_the_same_two() -> None:
    script = (ROOT / ".ci/run").read_text()

    assert "README.md" in script
    assert r"python3 -m venv \.venv && .* && \.venv\/bin\/pytest" in script
    assert ".venv/bin/dormouse" in script
    assert "demo --once" in script


@pytest.mark.parametrize("name", PAGES)
def test_every_file_that_a_page_names_exists(name: str) -> None:
    words = [word.rstrip(".,;:") for text in in_code(name) for word in text.split()]
    paths = {word for word in words if word.split("/")[0] in FOLDERS and "/" in word}

    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", PAGES)
def test_every_link_of_a_page_leads_somewhere(name: str) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", page(name))

    for link in links:
        path, _, anchor = link.partition("#")
        target = (ROOT / name).parent / path if path else ROOT / name
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), link


def anchors(text: str) -> set[str]:
    """Return the addresses that headings get: lower case, words joined by hyphens."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", PAGES)
def test_no_page_names_a_real_address(name: str) -> None:
    text = page(name)
    addresses = re.findall(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", text)

    assert [each for each in addresses if not each.endswith(("example.com", "example.org"))] == []
    assert re.findall(r"/(?:home|Users|root|tmp)/\S+", text) == []
