"""The Dockerfile's own build commands work in a clean environment, and what they leave behind runs."""

from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.ops.image import run_in


def test_the_command_line_answers(image: Path) -> None:
    answered = run_in(image, "dormouse", "--help")

    assert answered.returncode == 0, answered.stderr
    assert "serve" in answered.stdout
    assert "migrate" in answered.stdout


def test_the_app_comes_from_the_image_with_its_migrations_beside_it(image: Path) -> None:
    told = run_in(image, "python", "-c", "import app.migrate as m; print(m.__file__); print(m.FOLDER)")

    assert told.stdout.split() == [f"{image}/srv/dormouse/app/migrate.py", f"{image}/srv/dormouse/migrations"]
    assert list((image / "srv/dormouse/migrations/versions").glob("*.py"))


def test_serving_without_a_database_says_what_to_set(image: Path) -> None:
    refused = run_in(image, "dormouse", "serve")

    assert refused.returncode not in {0, 1}
    assert "DATABASE_URL" in refused.stdout + refused.stderr
    assert "Traceback" not in refused.stderr


def test_no_installer_is_left(image: Path) -> None:
    left = {path.name for path in (image / "venv/bin").iterdir()}

    assert not {name for name in left if name.startswith(("pip", "easy_install"))}
    assert not list((image / "venv/lib").glob("python*/site-packages/setuptools"))


def test_every_module_is_compiled_for_good(image: Path) -> None:
    sources = [path for path in (image / "srv/dormouse").rglob("*.py") if "__pycache__" not in path.parts]

    compiled = [next((path.parent / "__pycache__").glob(f"{path.stem}.*.pyc")) for path in sources]

    unchecked_hash = (1).to_bytes(4, "little")
    assert len(sources) > 10
    assert {path.read_bytes()[4:8] for path in compiled} == {unchecked_hash}


def test_what_is_pinned_is_all_that_is_needed(image: Path) -> None:
    (packages,) = (image / "venv/lib").glob("python*/site-packages")
    held = list(metadata.distributions(path=[str(packages)]))
    names = {canonicalize_name(found.name) for found in held}

    needed = {Requirement(text) for found in held for text in found.requires or []}
    active = [need for need in needed if need.marker is None or need.marker.evaluate({"extra": ""})]

    assert len(active) > 20
    assert [str(need) for need in active if canonicalize_name(need.name) not in names] == []
