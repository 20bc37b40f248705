"""Run the unit tests with other versions of the packages than those that constraints.txt records.

    python scripts/test_versions.py newest
    python scripts/test_versions.py lowest

`newest` are the newest versions on the index today; `lowest` are the lowest that pyproject.toml
allows of the packages that users install. For these, all that was published after constraints.txt
was recorded is ignored. The tests run in a copy of the project's files in build/versions, with an
environment and native code of their own. At the end this script prints which packages had other
versions than recorded. The exit status is that of the tests. Needs the extra `constraints`, and
about four minutes on two cores.
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
COPIES = ROOT / "build" / "versions"
RECORDED = ROOT / "constraints.txt"
# Seconds that the tests may take, since another version of a package may wait forever, and the exit
# status after that.
LIMIT_S = 1500
TIMED_OUT = 124
# Suffixes of files that are removed from an earlier copy if the project no longer has them.
SOURCES = (".py", ".pyi", ".pyx", ".pxd", ".h")

# Extras whose lowest versions are tested: those for users, and `build`, which builds pylink. Other
# extras are tools of this project, have fixed releases (`cuda`, `cuda12`), or are parts of these
# (`fleet`).
FOR_USERS = ("build", "dedup", "fleet-dask", "lines", "plot", "remarks", "report", "worker")


def copy_tree(target: Path) -> None:
    """Copy the project's files to `target`; what an earlier run installed and built there stays."""
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
    """Let uv choose versions for this Python, and write them with hashes and "via" comments.

    Only versions count that existed when constraints.txt was recorded.
    """
    recorded_on = re.search(r"^# Recorded on (\S+)", RECORDED.read_text(encoding="utf-8"))
    day = recorded_on[1] if recorded_on else "2100-01-01"
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-header"]
    command += ["--generate-hashes", "--exclude-newer", f"{day}T23:59:59Z", "pyproject.toml"]
    subprocess.run([*command, *map(str, arguments), "-o", str(output)], cwd=ROOT, check=True)


def lowest_versions() -> Path:
    """Write a constraints file with the lowest versions for users, and with tools for tests."""
    users, everything = COPIES / "users.txt", COPIES / "lowest.txt"
    extras = [word for name in FOR_USERS for word in ("--extra", name)]
    compile_versions(users, "--resolution", "lowest-direct", *extras)
    # Without hashes: if one constraint has a hash, pip requires hashes of all packages.
    pinned_lines = [
        line.split(" \\")[0] for line in users.read_text().splitlines() if line[:1].isalpha()
    ]
    users.write_text("\n".join(pinned_lines) + "\n", encoding="utf-8")
    compile_versions(everything, *extras, "--extra", "test", "--constraint", users)
    return everything


def recorded_versions() -> dict[str, set[str]]:
    """Return versions of each package in constraints.txt; several where they depend on Python."""
    versions: dict[str, set[str]] = {}
    for pin in install.read_pins(RECORDED.read_text(encoding="utf-8")):
        versions.setdefault(pin.name, set()).add(pin.text.split("==")[1].split()[0])
    return versions


def list_changed(python: Path) -> list[str]:
    """Return a line for each package of an environment whose version is not the recorded one."""
    freeze = [str(python), "-m", "pip", "--disable-pip-version-check", "list", "--format=freeze"]
    listed = subprocess.run(freeze, check=True, capture_output=True, text=True).stdout
    recorded = recorded_versions()
    lines = []
    for line in listed.splitlines():
        name, _, version = line.partition("==")
        recorded_here = recorded.get(install.canonical(name))
        if recorded_here and version not in recorded_here:
            lines.append(f"{name} {version} (recorded: {', '.join(sorted(recorded_here))})")
    return lines


def unit_environment(versions: str) -> dict[str, str]:
    """Return the environment variables for `make unit` in the copy.

    Variables of make are removed, and those with which tests require nvlink and other programs.
    """
    foreign = ("MAKE", "PYLINK_REQUIRE_")
    environment = {name: text for name, text in os.environ.items() if not name.startswith(foreign)}
    if versions == "lowest":
        # Old packages use functions that the newer packages they need have deprecated since.
        environment["PYTEST_ADDOPTS"] = "-W ignore::DeprecationWarning"
    return environment


def run_limited(command: list[str], folder: Path, environment: dict[str, str]) -> int:
    """Run a command and return its exit status.

    After LIMIT_S seconds, kill its processes and return TIMED_OUT.
    """
    with subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True) as running:
        try:
            return running.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            return TIMED_OUT


def main() -> int:
    """Make the copy, run its unit tests, and print which versions differed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("versions", choices=("newest", "lowest"))
    versions = parser.parse_args().versions
    tree = COPIES / versions
    copy_tree(tree)
    constraints = lowest_versions() if versions == "lowest" else ""
    # An environment with versions of yesterday would not be the newest.
    (tree / ".venv" / "extras").unlink(missing_ok=True)
    command = ["make", "--no-print-directory", "unit", "EXTRAS=test", "VENV=.venv"]
    environment = unit_environment(versions)
    status = run_limited(
        [*command, f"CONSTRAINTS={constraints}", f"PYTHON={sys.executable}"], tree, environment
    )
    verdict = {0: "passed", TIMED_OUT: f"did not end within {LIMIT_S} s"}.get(status, "FAILED")
    python = tree / ".venv" / "bin" / "python"
    different = list_changed(python) if python.exists() else []
    print(f"unit tests with the {versions} versions: {verdict}", flush=True)
    if different:
        print("packages with other versions than constraints.txt records:")
        print("\n".join(f"  {line}" for line in different), flush=True)
    return status


if __name__ == "__main__":
    raise SystemExit(main())
