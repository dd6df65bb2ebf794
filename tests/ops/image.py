"""The Dockerfile read as instructions, and its build stage carried out in a folder: tests need no Docker.

Dockerfile --read_stages--> Stage (FROM) --build--> COPY from the allowed context, RUN by sh, in a folder
"""

import fnmatch
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tests.ops.step import ROOT


@dataclass
class Stage:
    """One FROM and what follows it, as (instruction, argument) pairs."""

    base: str
    name: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def all(self, instruction: str) -> list[str]:
        return [argument for name, argument in self.steps if name == instruction]


def read_stages(text: str) -> list[Stage]:
    """Split a Dockerfile into stages; comments go, continued lines are joined."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    stages: list[Stage] = []
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        instruction, _, argument = line.strip().partition(" ")
        if instruction == "FROM":
            base, _, name = argument.partition(" AS ")
            stages.append(Stage(base, name))
        else:
            stages[-1].steps.append((instruction, " ".join(argument.split())))
    return stages


def context() -> set[str]:
    """Return the files that .dockerignore lets into the build, as paths from the repository's root."""
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    skipped = {".git", ".venv", ".dormouse"}
    found: set[str] = set()
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in skipped]
        paths = [(Path(folder) / name).relative_to(ROOT).as_posix() for name in files]
        found.update(path for path in paths if not _ignored(path, rules))
    return found


def _ignored(path: str, rules: list[str]) -> bool:
    parts = PurePosixPath(path).parts
    names = ["/".join(parts[: size + 1]) for size in range(len(parts))]
    ignored = False
    for rule in rules:
        pattern = rule.lstrip("!").removeprefix("**/")
        anywhere = rule.startswith("**/")
        candidates = parts if anywhere else names
        if any(_matches(candidate, pattern) for candidate in candidates):
            ignored = not rule.startswith("!")
    return ignored


def _matches(path: str, pattern: str) -> bool:
    # Docker's `*` stops at a slash, fnmatch's does not.
    return path.count("/") == pattern.count("/") and fnmatch.fnmatchcase(path, pattern)


def build(stage: Stage, folder: Path) -> None:
    """Carry out *stage* below *folder*, which stands for the image's root."""
    allowed = context()
    workdir = folder
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
    for instruction, argument in stage.steps:
        if instruction == "WORKDIR":
            workdir = folder / argument.lstrip("/")
            workdir.mkdir(parents=True, exist_ok=True)
        elif instruction == "COPY":
            *sources, target = argument.split()
            for source in sources:
                _copy(source, workdir / target, allowed)
        elif instruction == "RUN":
            command = re.sub(r"(?<![\w.])/(venv|srv)\b", rf"{folder}/\1", argument)
            command = re.sub(r"^python ", f"{sys.executable} ", command)
            ran = subprocess.run(
                ["sh", "-c", command],
                cwd=workdir,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=600,
            )
            assert ran.returncode == 0, f"{argument}\n{ran.stdout}\n{ran.stderr}"


def _copy(source: str, target: Path, allowed: set[str]) -> None:
    files = sorted(path for path in allowed if path == source or path.startswith(f"{source}/"))
    assert files, f"COPY {source}: .dockerignore lets nothing of it in"
    for path in files:
        inside = Path(path).name if path == source else path.removeprefix(f"{source}/")
        place = target / inside
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, place)


def image_environment(image: Path) -> dict[str, str]:
    """Return what the image's ENV would give a process, and nothing of ours."""
    return {"PATH": f"{image}/venv/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}


def run_in(image: Path, *command: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run a program of the image to its end, as a container would."""
    return subprocess.run(
        [str(image / "venv/bin" / command[0]), *command[1:]],
        cwd=image / "srv/dormouse",
        env=image_environment(image) | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
