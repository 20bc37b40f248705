"""Build wheels for Linux, also for machines and C libraries that this one does not have.

    python scripts/build_wheels.py [--python PYTHON ...] [--target TARGET ...] [--out DIRECTORY]

No container is needed: the compiler is Zig's (the package `ziglang`), which contains headers and
libraries of every target, down to the oldest release of glibc that the wheel's tag promises.
Python's own headers are the same on all 64-bit Linux machines, so those of PYTHON serve all
targets. Each wheel is checked: it has all native code, for the target's machine; `auditwheel` finds
no newer symbol than the tag allows; a wheel for musl needs no other library. The same sources give
the same bytes: SOURCE_DATE_EPOCH is the last commit's time unless it is set.

PYTHON are interpreters, by default the one that runs this script. An interpreter without Cython is
replaced by an environment that has it. Debian's own interpreters cannot be used, since their
headers contain paths of Debian. Needs the extra `wheels`. .github/workflows/release.yml builds a
release with this script, and links with each wheel on its machine.
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

# Oldest releases of the C libraries with which the wheels work.
GLIBC = "2.17"
MUSL = "1_2"

# Field e_machine of a cubin: number 190, little-endian.
EM_CUDA = b"\xbe\0"


class Target:
    """A machine and its C library, with their names for Zig, for Python's modules and in tags.

    `elf_machine` is the value of e_machine in files for it.
    """

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


def build_wheels_for(python: str, targets: Iterable[Target], out: Path) -> Iterator[Path]:
    """Yield the wheel of each target for one version of Python; end the program if one fails.

    The wheel for this machine is built first, even if it is not among `targets`: the start-up
    bundle is made by importing its package. Only a file name in the bundle differs by target.
    """
    suffix = evaluate(python, "sysconfig.get_config_var('EXT_SUFFIX')")
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


def build(python: str, target: Target, out: Path, importable: Path | None = None) -> Path:
    """Build the wheel of one target for one version of Python; end the program if that fails.

    `importable` is a folder with the package for this machine, needed for other targets.
    """
    version = evaluate(python, "'%d%d' % sys.version_info[:2]")
    threaded = evaluate(python, "'t' if sysconfig.get_config_var('Py_GIL_DISABLED') else ''")
    compiler = f"{sys.executable} -m ziglang cc -target {target.zig}"
    with tempfile.TemporaryDirectory() as folder:
        build_base = Path(folder) / "build"
        environment = {
            **os.environ,
            "CC": compiler,
            "LDSHARED": f"{compiler} -shared -s",
            "SETUPTOOLS_EXT_SUFFIX": f".cpython-{version}{threaded}-{target.suffix}.so",
            "PYLINK_SHIP_FROM": str(importable or ""),
            "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH") or commit_time(),
        }
        command = [python, "setup.py", "--quiet", "build", "--build-base", str(build_base)]
        command += ["bdist_wheel", "--plat-name", target.tag, "--dist-dir", folder]
        run(command, environment)
        (built,) = Path(folder).glob("*.whl")
        check_wheel(built, target)
        wheel = out / built.name
        wheel.write_bytes(built.read_bytes())
    return wheel


def find_or_make_environment(python: str, folder: Path) -> str:
    """Return the interpreter if it has Cython, else one of a new environment in `folder`."""
    command = [python, "-c", "import Cython, setuptools"]
    if subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0:
        return python
    run([python, "-m", "venv", str(folder)])
    environment_python = str(folder / "bin" / "python")
    needed = [f"{name}=={metadata.version(name)}" for name in ("Cython", "setuptools")]
    pip = [environment_python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, *needed])
    return environment_python


def evaluate(python: str, expression: str) -> str:
    """Return the text of an expression over `sys` and `sysconfig` in another interpreter."""
    program = f"import sys, sysconfig; print({expression})"
    return subprocess.run(
        [python, "-c", program], capture_output=True, text=True, check=True
    ).stdout.strip()


def commit_time() -> str:
    """Return the time of the last commit, in seconds since 1970."""
    command = ["git", "log", "-1", "--format=%ct"]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def run(command: list[str], environment: dict[str, str] | None = None) -> str:
    """Return the output of a command; if it fails, print the output and end the program."""
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}{' '.join(command)}: {done.returncode}")
    return done.stdout


def check_wheel(wheel: Path, target: Target) -> None:
    """End the program unless the wheel has all native code, for its target and its C library."""
    required = {"kernels", *(source.stem for source in ROOT.glob("src/_native/jitlink/*.c"))}
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
            check_needed_libraries(wheel, name, data)
        # A file with the name of this folder would have other bytes if it were built elsewhere.
        if str(ROOT).encode() in data:
            sys.exit(f"{wheel.name}: {name} has the name of the folder {ROOT}")
    bundles = [name for name in files if name.startswith("pylink/startup/link.")]
    (kernels,) = (Path(name).name for name in names if "/kernels." in name)
    if len(bundles) != 1 or kernels.encode() not in files[bundles[0]]:
        sys.exit(f"{wheel.name} lacks the bundle for fast starts of {kernels}")
    if lacking := required - {Path(name).name.partition(".")[0] for name in names}:
        sys.exit(f"{wheel.name} lacks {sorted(lacking)}")
    if target.libc == "gnu":
        audit = run([sys.executable, "-m", "auditwheel", "show", str(wheel)])
        if target.tag not in " ".join(audit.split()).replace('"', " ").split():
            sys.exit(f"{audit}{wheel.name} is not a wheel for {target.tag}")


def native_code(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the ELF files among `files` (contents by name) for a CPU, unlike the demo's cubins."""
    elf = {name: data for name, data in files.items() if data.startswith(b"\x7fELF")}
    return {name: data for name, data in elf.items() if data[18:20] != EM_CUDA}


def check_needed_libraries(wheel: Path, name: str, module: bytes) -> None:
    """End the program if a module or program for musl needs another library than musl's.

    auditwheel cannot check that: it knows musl's library only by the name that distributions use,
    and Zig's modules name it libc.so, which musl accepts. Zig links programs statically, so they
    need no library.
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
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    targets = [TARGETS[name] for name in arguments.target]
    for python in arguments.python:
        with tempfile.TemporaryDirectory() as folder:
            build_python = find_or_make_environment(python, Path(folder))
            for wheel in build_wheels_for(build_python, targets, arguments.out):
                print(wheel)


if __name__ == "__main__":
    main()
