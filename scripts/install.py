"""Install what make needs of the package index, then pylink itself in editable form, by pip.

    python scripts/install.py build,test,oracle,cuda --constraints constraints.txt

installs the packages of these extras into the environment of the Python that runs this. With a
constraints file these are the versions that it records, each checked against its hashes; without
one, the newest that pyproject.toml allows.

`make constraints` writes that file for all extras together, with "via" comments, which say what
each package is there for. So what some extras need is found in it without asking the index.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

if sys.version_info >= (3, 11):
    import tomllib as toml
else:  # Each pip carries a copy for its own use.
    from pip._vendor import tomli as toml

ROOT = Path(__file__).resolve().parent.parent
PROJECT = "pylink-cuda"
# The name of a requirement, and the extras behind it.
REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[([^]]*)\])?")
VIA = re.compile(r"#\s*(?:via\s+)?([A-Za-z0-9][A-Za-z0-9._-]*)")


class Pin(NamedTuple):
    """A package of the constraints file: its lines there, and the packages that need it."""

    name: str
    text: str
    needed_by: frozenset[str]


def canonical(name: str) -> str:
    """The name of a package as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_project() -> dict[str, Any]:
    """The table `project` of pyproject.toml."""
    found: dict[str, Any] = toml.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project: dict[str, Any] = found["project"]
    return project


def requirements(project: dict[str, Any], extras: Iterable[str]) -> list[str]:
    """What the project and its extras require, with extras that name other extras resolved."""
    found = list(project["dependencies"])
    todo, seen = list(extras), set[str]()
    while todo:
        extra = todo.pop(0)
        if extra in seen:
            continue
        seen.add(extra)
        if extra not in project["optional-dependencies"]:
            sys.exit(f"pyproject.toml has no extra '{extra}'")
        for requirement in project["optional-dependencies"][extra]:
            match = REQUIREMENT.match(requirement)
            if match and canonical(match[1]) == PROJECT:
                todo += [name.strip() for name in match[2].split(",")]
            else:
                found.append(requirement)
    return found


def pins(constraints: str) -> Iterator[Pin]:
    """The packages of a constraints file; one for each marker where versions depend on Python."""
    for block in re.split(r"\n(?=[A-Za-z0-9])", constraints):
        match = REQUIREMENT.match(block)
        if match is None:
            continue
        lines = block.splitlines()
        comments = [found[1] for line in lines if (found := VIA.match(line.strip()))]
        text = "\n".join(line for line in lines if not line.strip().startswith("#"))
        yield Pin(canonical(match[1]), text, frozenset(map(canonical, comments)))


def closure(pinned: list[Pin], roots: Iterable[str]) -> list[Pin]:
    """The pins of some packages and of all that they need, in the file's order."""
    wanted = set(roots)
    if lacking := wanted - {pin.name for pin in pinned}:
        sys.exit(f"the constraints file lacks {', '.join(sorted(lacking))}: make constraints")
    while grown := {pin.name for pin in pinned if pin.needed_by & wanted} - wanted:
        wanted |= grown
    return [pin for pin in pinned if pin.name in wanted]


def pip(*arguments: str | Path) -> None:
    """Run pip; SystemExit with its status if it fails."""
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", *arguments]
    # make builds the native code itself, and keeps what has not changed.
    environment = {**os.environ, "PYLINK_NATIVE": "0"}
    done = subprocess.run(list(map(str, command)), check=False, env=environment)
    if done.returncode:
        raise SystemExit(done.returncode)


def main() -> None:
    """Read the command line and install."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("extras", help="extras of pyproject.toml, separated by commas")
    parser.add_argument("--constraints", default="", help="file of versions (default: the newest)")
    arguments = parser.parse_args()
    needed = requirements(read_project(), arguments.extras.split(","))
    if arguments.constraints:
        pinned = list(pins(Path(arguments.constraints).read_text(encoding="utf-8")))
        roots = [canonical(match[1]) for name in needed if (match := REQUIREMENT.match(name))]
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as chosen:
            chosen.write("\n".join(pin.text for pin in closure(pinned, roots)) + "\n")
            chosen.flush()
            pip("--no-deps", "--require-hashes", "--requirement", chosen.name)
    else:
        pip("--upgrade", "--upgrade-strategy", "eager", *needed)
    pip("--no-deps", "--no-build-isolation", "--editable", ROOT)


if __name__ == "__main__":
    main()
