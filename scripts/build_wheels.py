"""Build wheels for Linux, also for machines and C libraries that this one does not have.

    python scripts/build_wheels.py [--python PYTHON ...] [--target TARGET ...] [--out DIRECTORY]

Without a container: the compiler is Zig's (the package `ziglang`), which brings headers and
libraries of every target, down to the oldest release of glibc that the wheel's tag promises. What
Python itself declares about a target is the same on all 64-bit Linux machines, so the headers of
the Python at hand serve all. Each wheel is checked: it has all native code, for the target's
machine; `auditwheel` finds no newer symbol than the tag allows, and one for musl needs no other
library. The same sources give the same bytes: SOURCE_DATE_EPOCH is the last commit's time unless it
is set.

PYTHON are interpreters, by default the one that runs this; one without Cython gets an environment
that has it. Debian's own interpreters do not do: their headers are for Debian's folders. Needs the
extra `wheels`. .github/workflows/release.yml builds a release so, and links
with each wheel where its machine is.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

ROOT = Path(__file__).resolve().parents[1]

GLIBC = "2.17"
MUSL = "1_2"

# ELF machine number 190, as a file has it.
EM_CUDA = b"\xbe\0"


class Target:
    """A machine and its C library: what Zig, Python's import system and the wheel's tag call it."""

    def __init__(self, machine: str, libc: str, elf_machine: int) -> None:
        self.name = f"{machine}-{libc}"
        self.libc = libc
        self.zig = f"{machine}-linux-gnu.{GLIBC}" if libc == "gnu" else f"{machine}-linux-musl"
        self.suffix = f"{machine}-linux-{libc}"
        kind = f"manylinux_{GLIBC.replace('.', '_')}" if libc == "gnu" else f"musllinux_{MUSL}"
        self.tag = f"{kind}_{machine}"
        self.elf_machine = elf_machine


# ELF machine numbers: the generic ABI's EM_X86_64 and EM_AARCH64.
TARGETS = {
    target.name: target
    for target in (
        Target("x86_64", "gnu", 62),
        Target("x86_64", "musl", 62),
        Target("aarch64", "gnu", 183),
        Target("aarch64", "musl", 183),
    )
}


def build_all(python: str, targets: Iterable[Target], out: Path) -> Iterator[Path]:
    """The wheels for one interpreter's version; the program ends when one fails.

    That which this machine can load is built first, also when it is not asked for: the bundle for
    fast starts is made by importing it, and is the same for all targets but for one name.
    """
    suffix = ask(python, "sysconfig.get_config_var('EXT_SUFFIX')")
    first = next(target for target in TARGETS.values() if suffix.endswith(f"-{target.suffix}.so"))
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(python, first, Path(folder))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(Path(folder) / "loaded")
        for target in targets:
            if target is first:
                yield Path(shutil.copy(wheel, out))
            else:
                yield build(python, target, out, Path(folder) / "loaded")


def build(python: str, target: Target, out: Path, loaded: Path | None = None) -> Path:
    """The wheel for one interpreter's version and one target; the program ends when it fails.

    `loaded` is a folder with the package for this machine, for a target that it cannot load.
    """
    version = ask(python, "'%d%d' % sys.version_info[:2]")
    threaded = ask(python, "'t' if sysconfig.get_config_var('Py_GIL_DISABLED') else ''")
    compiler = f"{sys.executable} -m ziglang cc -target {target.zig}"
    with tempfile.TemporaryDirectory() as folder:
        build_base = Path(folder) / "build"
        environment = {
            **os.environ,
            "CC": compiler,
            "LDSHARED": f"{compiler} -shared -s",
            "SETUPTOOLS_EXT_SUFFIX": f".cpython-{version}{threaded}-{target.suffix}.so",
            "PYLINK_SHIP_FROM": str(loaded or ""),
            "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH") or commit_time(),
        }
        command = [python, "setup.py", "--quiet", "build", "--build-base", str(build_base)]
        command += ["bdist_wheel", "--plat-name", target.tag, "--dist-dir", folder]
        run(command, environment)
        (made,) = Path(folder).glob("*.whl")
        check(made, target)
        wheel = out / made.name
        wheel.write_bytes(made.read_bytes())
    return wheel


def with_cython(python: str, folder: Path) -> str:
    """The interpreter, or that of an environment of its own in `folder`, which has Cython."""
    command = [python, "-c", "import Cython, setuptools"]
    if subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0:
        return python
    run([python, "-m", "venv", str(folder)])
    made = str(folder / "bin" / "python")
    needed = [f"{name}=={metadata.version(name)}" for name in ("Cython", "setuptools")]
    run([made, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *needed])
    return made


def ask(python: str, expression: str) -> str:
    program = f"import sys, sysconfig; print({expression})"
    return subprocess.run(
        [python, "-c", program], capture_output=True, text=True, check=True
    ).stdout.strip()


def commit_time() -> str:
    command = ["git", "log", "-1", "--format=%ct"]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def run(command: list[str], environment: dict[str, str] | None = None) -> str:
    """What a command prints; the program ends with it when the command fails."""
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}{' '.join(command)}: {done.returncode}")
    return done.stdout


def check(wheel: Path, target: Target) -> None:
    """End the program unless the wheel has all native code, for its target, with old symbols."""
    wanted = {"kernels", *(source.stem for source in ROOT.glob("src/_native/jitlink/*.c"))}
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    native = native_code(files)
    names = [name for name in native if name.endswith(".so")]
    for name, data in native.items():
        machine = int.from_bytes(data[18:20], "little")
        if machine != target.elf_machine:
            sys.exit(f"{wheel.name}: {name} is for ELF machine {machine}")
        if name in names and not name.endswith(f"{target.suffix}.so"):
            sys.exit(f"{wheel.name}: {name} is not a module of {target.suffix}")
        if target.libc == "musl":
            check_needed(wheel, name, data)
        # The same sources anywhere else would make another wheel.
        if str(ROOT).encode() in data:
            sys.exit(f"{wheel.name}: {name} has the name of the folder {ROOT}")
    bundles = [name for name in files if name.startswith("pylink/startup/link.")]
    (kernels,) = (Path(name).name for name in names if "/kernels." in name)
    if len(bundles) != 1 or kernels.encode() not in files[bundles[0]]:
        sys.exit(f"{wheel.name} lacks the bundle for fast starts of {kernels}")
    if lacking := wanted - {Path(name).name.partition(".")[0] for name in names}:
        sys.exit(f"{wheel.name} lacks {sorted(lacking)}")
    if target.libc == "gnu":
        audit = run([sys.executable, "-m", "auditwheel", "show", str(wheel)])
        if target.tag not in " ".join(audit.split()).replace('"', " ").split():
            sys.exit(f"{audit}{wheel.name} is no {target.tag}")


def native_code(files: dict[str, bytes]) -> dict[str, bytes]:
    """The ELF files among these that the machine runs: the demo's cubins are for GPUs."""
    elf = {name: data for name, data in files.items() if data.startswith(b"\x7fELF")}
    return {name: data for name, data in elf.items() if data[18:20] != EM_CUDA}


def check_needed(wheel: Path, name: str, module: bytes) -> None:
    """End the program when a module or program for musl needs more than musl.

    It has one library with one version of each symbol, which it finds under any name like libc.so;
    auditwheel knows the name alone that distributions link with. Zig links programs statically:
    they need nothing.
    """
    dynamic = ELFFile(io.BytesIO(module)).get_section_by_name(".dynamic")
    if dynamic is None and not name.endswith(".so"):
        return
    assert isinstance(dynamic, DynamicSection)
    needed = {getattr(tag, "needed", "") for tag in dynamic.iter_tags("DT_NEEDED")}
    if needed - {"libc.so"}:
        sys.exit(f"{wheel.name}: {name} needs {sorted(needed)}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build wheels for Linux.")
    parser.add_argument("--python", nargs="+", default=[sys.executable])
    parser.add_argument("--target", nargs="+", default=list(TARGETS), choices=TARGETS)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    wanted = parser.parse_args()
    wanted.out.mkdir(parents=True, exist_ok=True)
    for python in wanted.python:
        with tempfile.TemporaryDirectory() as folder:
            ready = with_cython(python, Path(folder))
            for wheel in build_all(ready, [TARGETS[name] for name in wanted.target], wanted.out):
                print(wheel)


if __name__ == "__main__":
    main()
