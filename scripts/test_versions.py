"""Run the unit tests with other versions of the packages than those that constraints.txt records.

    python scripts/test_versions.py newest
    python scripts/test_versions.py lowest

`newest` takes what the index serves today, `lowest` the lowest versions of what users install that
pyproject.toml allows, as they were when constraints.txt was made. The tests run in a copy of the
project's files below build/versions, with an environment and native code of their own. Last, this
prints which packages had other versions than recorded. The exit status is that of the tests. Needs
the extra `constraints`, and about four minutes on two cores.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import install

ROOT = install.ROOT
FOLDER = ROOT / "build" / "versions"
RECORDED = ROOT / "constraints.txt"
# A package may wait for ever where the recorded version does not: seconds, and the exit status.
LIMIT = 1500
LATE = 124
# What a copy of an earlier run may have that is called otherwise now; what was built there stays.
SOURCES = (".py", ".pyi", ".pyx", ".pxd", ".h")

# What users install, and what builds it; the other extras are tools of this project.
FOR_USERS = ("build", "dedup", "fleet-dask", "lines", "plot", "remarks", "report", "worker")


def copy_tree(target: Path) -> None:
    """The project's files as they are now; what an earlier run installed and built there stays."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    names = set(listed.split("\0")) - {""}
    for name in names:
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    for folder in ("src", "tests", "scripts"):
        for path in (target / folder).rglob("*"):
            if path.suffix in SOURCES and str(path.relative_to(target)) not in names:
                path.unlink()


def compile_versions(output: Path, *arguments: str | Path) -> None:
    """Have uv choose versions for this Python, and write them with hashes and "via" comments."""
    made = re.search(r"^# Recorded on (\S+)", RECORDED.read_text(encoding="utf-8"))
    day = made[1] if made else "2100-01-01"
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-header"]
    command += ["--generate-hashes", "--exclude-newer", f"{day}T23:59:59Z", "pyproject.toml"]
    subprocess.run([*command, *map(str, arguments), "-o", str(output)], cwd=ROOT, check=True)


def lowest() -> Path:
    """A constraints file of the lowest versions for users, and of tools for tests beside them."""
    users, everything = FOLDER / "users.txt", FOLDER / "lowest.txt"
    extras = [word for name in FOR_USERS for word in ("--extra", name)]
    compile_versions(users, "--resolution", "lowest-direct", *extras)
    # Markers and versions alone: a constraint with a hash would ask for hashes of everything.
    kept = [line.split(" \\")[0] for line in users.read_text().splitlines() if line[:1].isalpha()]
    users.write_text("\n".join(kept) + "\n", encoding="utf-8")
    compile_versions(everything, *extras, "--extra", "test", "--constraint", users)
    return everything


def recorded_versions() -> dict[str, set[str]]:
    """The versions of each package in constraints.txt; several where they depend on Python."""
    versions: dict[str, set[str]] = {}
    for pin in install.pins(RECORDED.read_text(encoding="utf-8")):
        versions.setdefault(pin.name, set()).add(pin.text.split("==")[1].split()[0])
    return versions


def changed(python: Path) -> list[str]:
    """A line for each package of an environment whose version is not the recorded one."""
    freeze = [str(python), "-m", "pip", "--disable-pip-version-check", "list", "--format=freeze"]
    listed = subprocess.run(freeze, check=True, capture_output=True, text=True).stdout
    recorded = recorded_versions()
    lines = []
    for line in listed.splitlines():
        name, _, version = line.partition("==")
        known = recorded.get(install.canonical(name))
        if known and version not in known:
            lines.append(f"{name} {version} (recorded: {', '.join(sorted(known))})")
    return lines


def unit_environment(versions: str) -> dict[str, str]:
    """The environment of `make unit` in the copy.

    What a run of all tests requires, nvlink and the clients, is not there.
    """
    foreign = ("MAKE", "PYLINK_REQUIRE_")
    environment = {name: text for name, text in os.environ.items() if not name.startswith(foreign)}
    if versions == "lowest":
        # An old package beside newer ones that it needs uses what they have deprecated since.
        environment["PYTEST_ADDOPTS"] = "-W ignore::DeprecationWarning"
    return environment


def run_limited(command: list[str], folder: Path, environment: dict[str, str]) -> int:
    """The exit status of a command, or LATE after it and all that it started were killed."""
    with subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True) as running:
        try:
            return running.wait(LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            return LATE


def main() -> int:
    """Make the copy, run its unit tests, and say what differed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("versions", choices=("newest", "lowest"))
    versions = parser.parse_args().versions
    tree = FOLDER / versions
    copy_tree(tree)
    constraints = lowest() if versions == "lowest" else ""
    # An environment with versions of yesterday would not be the newest.
    (tree / ".venv" / "extras").unlink(missing_ok=True)
    command = ["make", "--no-print-directory", "unit", "EXTRAS=test", "VENV=.venv"]
    environment = unit_environment(versions)
    status = run_limited(
        [*command, f"CONSTRAINTS={constraints}", f"PYTHON={sys.executable}"], tree, environment
    )
    verdict = {0: "passed", LATE: f"did not end within {LIMIT} s"}.get(status, "FAILED")
    python = tree / ".venv" / "bin" / "python"
    different = changed(python) if python.exists() else []
    print(f"unit tests with the {versions} versions: {verdict}", flush=True)
    if different:
        print("packages with other versions than constraints.txt records:")
        print("\n".join(f"  {line}" for line in different), flush=True)
    return status


if __name__ == "__main__":
    raise SystemExit(main())
