"""requirements.txt pins what pyproject asks for, by hash, and says nothing of the machine that wrote it."""

import re
import tomllib
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.ops.step import ROOT

FILES = ["requirements.txt", ".ci/build-requirements.txt"]
PIN = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>\S+)(?: ; (?P<marker>[^\\]+?))? \\$", re.MULTILINE)


def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def asked_of_the_image() -> list[Requirement]:
    """Return what the service needs, and the extra that the image carries: alerts must work where the service runs."""
    project = pyproject()["project"]
    return [Requirement(text) for text in project["dependencies"] + project["optional-dependencies"]["alerts"]]


def pins(file: str) -> dict[str, Version]:
    return {found["name"]: Version(found["version"]) for found in PIN.finditer((ROOT / file).read_text())}


def test_every_dependency_is_pinned_within_its_bounds() -> None:
    pinned = pins("requirements.txt")

    asked = asked_of_the_image()

    assert len(asked) > 10
    for need in asked:
        name = canonicalize_name(need.name)
        assert name in pinned, f"{name} is not pinned: run the command at the top of requirements.txt"
        assert pinned[name] in need.specifier, f"{name} {pinned[name]} is pinned, pyproject asks for {need}"


def test_every_pin_is_asked_for_by_pyproject_or_by_another_pin() -> None:
    asked = {canonicalize_name(need.name) for need in asked_of_the_image()}
    blocks = re.split(r"^(?=[a-z0-9])", (ROOT / "requirements.txt").read_text(), flags=re.MULTILINE)[1:]

    for block in blocks:
        name = block.partition("==")[0]
        by = set(re.findall(r"^ +#(?: via|  ) ([a-z0-9-]+)", block, re.MULTILINE))
        assert by, block
        assert ("dormouse" in by) == (name in asked), f"{name}: run the command at the top of requirements.txt"
        assert by - {"dormouse"} <= set(pins("requirements.txt"))


def test_the_build_tool_is_pinned_within_its_bounds() -> None:
    (need,) = (Requirement(text) for text in pyproject()["build-system"]["requires"])

    pinned = pins(".ci/build-requirements.txt")

    assert set(pinned) == {canonicalize_name(need.name)}
    assert pinned[canonicalize_name(need.name)] in need.specifier


@pytest.mark.parametrize("file", FILES)
def test_every_pin_has_a_hash(file: str) -> None:
    blocks = re.split(r"^(?=[a-z0-9])", (ROOT / file).read_text(), flags=re.MULTILINE)[1:]

    assert len(blocks) == len(pins(file))
    for block in blocks:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", block), block.partition(" ")[0]


@pytest.mark.parametrize("file", FILES)
def test_no_address_and_no_path_is_in_it(file: str) -> None:
    text = (ROOT / file).read_text()

    assert "://" not in text
    assert not re.search(r"--(extra-)?index|--find-links|--trusted-host| @ ", text)
    assert not re.search(r"(^|\s)/\w", text)


def test_nothing_is_pinned_that_the_service_must_not_carry() -> None:
    unwanted = {
        "python-multipart",
        "orjson",
        "watchfiles",
        "websockets",
        "pytest",
        "setuptools",
        "pip",
    }

    assert unwanted.isdisjoint(pins("requirements.txt"))
