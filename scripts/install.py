"""Install by pip the packages that make needs, then pylink itself in editable form.

    python scripts/install.py build,test,oracle,cuda --constraints constraints.txt

installs the packages of these extras into the environment of the Python that runs this script. With
a constraints file these have the versions that it records, each checked against its hashes; without
one, the newest that pyproject.toml allows.

`make constraints` writes that file for all extras together, with "via" comments, which say what
needs each package. So the packages of some extras are found in it without asking the index.
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
# A requirement: the name of a package, and its extras in brackets.
REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[([^]]*)\])?")
# A line of a "via" comment: the name of a package that needs the one above.
VIA = re.compile(r"#\s*(?:via\s+)?([A-Za-z0-9][A-Za-z0-9._-]*)")


class Pin(NamedTuple):
    """A package of the constraints file: its lines there, and the packages that need it."""

    name: str
    text: str
    needed_by: frozenset[str]


def canonical(name: str) -> str:
    """Return the name of a package as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_project() -> dict[str, Any]:
    """Return the table `project` of pyproject.toml."""
    tables: dict[str, Any] = toml.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project: dict[str, Any] = tables["project"]
    return project


def requirements(project: dict[str, Any], extras: Iterable[str]) -> list[str]:
    """Return the requirements of the project and of its extras, also of extras that these name."""
    required = list(project["dependencies"])
    remaining, resolved = list(extras), set[str]()
    while remaining:
        extra = remaining.pop(0)
        if extra in resolved:
            continue
        resolved.add(extra)
        if extra not in project["optional-dependencies"]:
            sys.exit(f"pyproject.toml has no extra '{extra}'")
        for requirement in project["optional-dependencies"][extra]:
            match = REQUIREMENT.match(requirement)
            if match and canonical(match[1]) == PROJECT:
                remaining += [name.strip() for name in match[2].split(",")]
            else:
                required.append(requirement)
    return required


def read_pins(constraints: str) -> Iterator[Pin]:
    """Yield the pins of a constraints file: a package has several if they depend on Python's."""
    for block in re.split(r"\n(?=[A-Za-z0-9])", constraints):
        match = REQUIREMENT.match(block)
        if match is None:
            continue
        lines = block.splitlines()
        dependents = [via[1] for line in lines if (via := VIA.match(line.strip()))]
        text = "\n".join(line for line in lines if not line.strip().startswith("#"))
        yield Pin(canonical(match[1]), text, frozenset(map(canonical, dependents)))


def select_pins(pinned: list[Pin], roots: Iterable[str]) -> list[Pin]:
    """Return pins of the packages `roots` and of all that they need, in the order of the file."""
    selected = set(roots)
    if lacking := selected - {pin.name for pin in pinned}:
        sys.exit(f"the constraints file lacks {', '.join(sorted(lacking))}: make constraints")
    while added := {pin.name for pin in pinned if pin.needed_by & selected} - selected:
        selected |= added
    return [pin for pin in pinned if pin.name in selected]


def pip(*arguments: str | Path) -> None:
    """Run `pip install`; SystemExit with its status if it fails."""
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", *arguments]
    # make builds the native code itself, so that only changed modules are compiled.
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
        pinned = list(read_pins(Path(arguments.constraints).read_text(encoding="utf-8")))
        roots = [canonical(match[1]) for name in needed if (match := REQUIREMENT.match(name))]
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as chosen:
            chosen.write("\n".join(pin.text for pin in select_pins(pinned, roots)) + "\n")
            chosen.flush()
            pip("--no-deps", "--require-hashes", "--requirement", chosen.name)
    else:
        pip("--upgrade", "--upgrade-strategy", "eager", *needed)
    pip("--no-deps", "--no-build-isolation", "--editable", ROOT)


if __name__ == "__main__":
    main()
