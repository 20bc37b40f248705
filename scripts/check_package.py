"""Build the sdist and wheels, and link the demo with those that this machine can install.

    python scripts/check_package.py [DIRECTORY]

The sdist must contain all tracked files except hidden ones, and is installed from source. Wheels
are built for every target of build_wheels.py, which checks them; the one for this machine is
installed. The script and the tests of conda's recipe run on the unpacked sdist. Each installation
has an environment of its own. The files are written to DIRECTORY (default: `dist`). Needs the
extras `test` and `wheels`, and a package index for setuptools and Cython.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

import build_wheels
import yaml

ROOT = Path(__file__).resolve().parents[1]


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Return a command's standard output; if it fails, print all its output and end the program."""
    done = subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}{' '.join(map(str, command))}: {done.returncode}")
    return done.stdout


def build_sdist(folder: Path) -> Path:
    """Build the sdist into an empty directory; end the program if it lacks a tracked file."""
    run(sys.executable, "-m", "build", "--sdist", "--outdir", folder, ROOT)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        shipped = {name.partition("/")[2] for name in archive.getnames()}
    tracked = {name for name in run("git", "ls-files").splitlines() if not name.startswith(".")}
    if lacking := tracked - shipped:
        sys.exit(f"the sdist lacks {sorted(lacking)}")
    return sdist


def check_names(wheel: Path) -> None:
    """End the program if the wheel lacks data or stubs, or has files beside the package."""
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    if unexpected := {top for top in tops if not top.startswith("pylink")}:
        sys.exit(f"the wheel has {sorted(unexpected)} beside the package")
    for source in (ROOT / "src" / "_native").glob("*/*.pyx"):
        if f"pylink/_native/{source.stem}.pyi" not in names:
            sys.exit(f"the wheel lacks the stub of kernel {source.stem}")
    data = {"py.typed", "report/stock/LinkPhases.section", "report/view/page.html.j2"}
    data |= {f"demo/linked/{path.name}" for path in (ROOT / "demo" / "linked").iterdir()}
    if lacking := {name for name in data if f"pylink/{name}" not in names}:
        sys.exit(f"the wheel lacks {sorted(lacking)}")


def check_install(package: Path, folder: Path) -> None:
    """Install the package without extras in the environment `folder`, and link the demo."""
    venv.create(folder, with_pip=True, clear=True)
    run(folder / "bin" / "pip", "install", "--quiet", package)
    print(f"{package.name}: {run(folder / 'bin' / 'pylink', '--version').splitlines()[1]}")
    print(run(folder / "bin" / "python", ROOT / "scripts" / "check_installed.py"), end="")


def check_recipe(sdist: Path, folder: Path) -> None:
    """Run the script and the tests of conda's recipe, in an environment of pip in `folder`.

    conda itself is not used. The packages that the recipe names are installed by their names on the
    index, and the compiler and C library are those of the system.
    """
    recipe = yaml.safe_load((ROOT / "packaging" / "conda" / "recipe.yaml").read_text())
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (sources,) = folder.iterdir()
    environment = folder / "venv"
    venv.create(environment, with_pip=True)
    needs = recipe["requirements"]
    packages = [
        name.removeprefix("python-").replace(" ", "")
        for name in (*needs["host"], *needs["run"])
        if name not in ("python", "pip")
    ]
    programs = environment / "bin"
    run(programs / "pip", "install", "--quiet", *packages)
    script = recipe["build"]["script"].replace("${{ PYTHON }}", str(programs / "python"))
    lines = [script]
    for test in recipe["tests"]:
        modules = test.get("python", {}).get("imports", [])
        lines += [f"cd / && {programs}/python -c 'import {module}'" for module in modules]
        lines += [f"cd / && PATH={programs}:$PATH && {line}" for line in test.get("script", [])]
    for line in lines:
        run("sh", "-ec", line, cwd=sources)
    print(f"conda's recipe: {len(lines)} lines run")


def main() -> None:
    """Build the sdist and wheels, check their contents, and install them."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist")
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("*.tar.gz"), *folder.glob("*.whl")):
        old.unlink()
    sdist = build_sdist(folder)
    wheels = {}
    built = build_wheels.build_wheels_for(sys.executable, build_wheels.TARGETS.values(), folder)
    for name, wheel in zip(build_wheels.TARGETS, built, strict=True):
        wheels[name] = wheel
        check_names(wheel)
        print(f"{wheels[name].name}: audited")
    with tempfile.TemporaryDirectory() as scratch:
        for package in (wheels[f"{platform.machine()}-gnu"], sdist):
            check_install(package, Path(scratch) / "venv")
        (Path(scratch) / "recipe").mkdir()
        check_recipe(sdist, Path(scratch) / "recipe")


if __name__ == "__main__":
    main()
