"""Build sdist and wheel, and link the demo with each of them installed in a fresh environment.

    python scripts/check_package.py [DIRECTORY]

The wheel is built from the sdist, so a file missing there shows. DIRECTORY takes both, `dist` by
default. Needs the `build` package and an index to take setuptools and Cython from.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "demo"
ARCH = "sm_90a"


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Standard output of a command that must succeed; what a failing one printed is shown."""
    done = subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}{' '.join(map(str, command))}: {done.returncode}")
    return done.stdout


def build(folder: Path) -> tuple[Path, Path]:
    """The sdist and the wheel, built into an empty directory."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    (sdist,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


def check_names(sdist: Path, wheel: Path) -> None:
    """Fail when sources or kernels are missing, or when sources are where modules belong."""
    with tarfile.open(sdist) as archive:
        shipped = {name.partition("/")[2] for name in archive.getnames()}
    folders = ("src", "tests", "docs", "examples")
    tracked = run("git", "ls-files", *folders, "*.md", "Makefile", "LICENSE")
    if lacking := set(tracked.splitlines()) - shipped:
        sys.exit(f"the sdist lacks {sorted(lacking)}")

    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    if unexpected := {top for top in tops if not top.startswith("pylink")}:
        sys.exit(f"the wheel has {sorted(unexpected)} beside the package")
    for source in (ROOT / "src" / "_native").glob("*.pyx"):
        stem = f"pylink/_native/{source.stem}."
        suffixes = {name.rpartition(".")[2] for name in names if name.startswith(stem)}
        if suffixes != {"so", "pyi"}:
            sys.exit(f"the wheel has {sorted(suffixes)} of kernel {source.stem}")
    data = {"py.typed", "report/stock/LinkPhases.section", "report/view/page.html.j2"}
    if lacking := {name for name in data if f"pylink/{name}" not in names}:
        sys.exit(f"the wheel lacks {sorted(lacking)}")


def check_install(package: Path, folder: Path) -> None:
    """Link the demo with the package installed, without any of its extras."""
    venv.create(folder, with_pip=True, clear=True)
    run(folder / "bin" / "pip", "install", "--quiet", package)
    cubins = sorted((DEMO / "cubins" / ARCH).glob("*.cubin"))
    output = folder / "out.cubin"
    run(folder / "bin" / "pylink", f"-arch={ARCH}", *cubins, "-o", output, cwd=folder)
    sys.path[:0] = [str(ROOT / "tests")]
    from helpers.compare import compare  # noqa: PLC0415

    if differences := compare(
        output.read_bytes(), (DEMO / "linked" / f"{ARCH}.cubin").read_bytes()
    ):
        sys.exit(f"{package.name} links the demo differently: {differences}")
    print(f"{package.name}: {run(folder / 'bin' / 'pylink', '--version').splitlines()[1]}, links")


def main() -> None:
    """Build, look inside, install."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist")
    for old in (*folder.glob("*.tar.gz"), *folder.glob("*.whl")):
        old.unlink()
    sdist, wheel = build(folder)
    check_names(sdist, wheel)
    with tempfile.TemporaryDirectory() as scratch:
        for package in (wheel, sdist):
            check_install(package, Path(scratch) / "venv")


if __name__ == "__main__":
    main()
