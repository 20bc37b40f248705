"""The real CUDA tools as an oracle: compile a source to a relocatable cubin, link with nvlink.

The tools come from the `oracle` extra (wheel nvidia-cuda-nvcc), from CUDA_HOME or from PATH, in
that order, and count only when nvlink says it is release 13.0.88: any other links differently.
Those of other releases stand beside: `scripts/install_oracle.py` puts each into a folder of its own
below build/oracles (PYLINK_ORACLES), and inside of `with release("13.5")` all functions here use
that one. Tests that need the tools of 13.0.88 carry the marker `needs_oracle`, and
PYLINK_REQUIRE_ORACLE=1 makes their absence a failure instead of a skip; those of other releases run
for each of `others()`.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers import library_link

ROOT = Path(__file__).resolve().parents[2]
# What nvlink of each release says of itself; `scripts/install_oracle.py` installs these.
VERSIONS = {
    "12.9": "12.9.86",
    "13.0": "13.0.88",
    "13.1": "13.1.115",
    "13.2": "13.2.86",
    "13.3": "13.3.73",
    "13.4": "13.4.92",
    "13.5": "13.5.37",
}
DEFAULT = "13.0"
# Other patch levels, each by its version; a toolchain of one has the version for its name.
PATCHES = ("13.0.48", "13.1.80", "13.2.51", "13.2.78", "13.3.33", "13.4.59")
# Of these the index has no nvlink and no nvcc: nvJitLink links (`library_link`), and ptxas takes
# PTX of 13.0 as of the version given here.
BY_LIBRARY = {"12.9": "8.8"}
PTX_VERSION = re.compile(r"^(\s*\.version\s+)\S+", re.MULTILINE)
NVLINK_RELEASE = f"V{VERSIONS[DEFAULT]}"
SOURCE_TIME = 1_700_000_000  # of every compiled source, in seconds
REQUIRED = os.environ.get("PYLINK_REQUIRE_ORACLE") == "1"

# PTX is compiled once for each of these and then assembled for every arch that can run it: cicc
# takes ten times as long as ptxas.
PTX_ARCH = {"75": "75", "80": "80", "86": "80", "87": "80", "88": "80", "89": "80"}
PTX_ARCH |= {"90": "90", "90a": "90", "100": "100", "100a": "100", "100f": "100", "103": "100"}
PTX_ARCH |= {"103a": "100", "103f": "100", "110": "100", "110a": "100", "110f": "100"}
PTX_ARCH |= {"120": "120", "120a": "120", "120f": "120", "121": "120", "121a": "120", "121f": "120"}
ARCHS = tuple(PTX_ARCH)

# nvcc's flags for cicc, and what nvcc hands on to ptxas for each.
PTXAS_FLAGS = {
    "-G": ("-g", "--dont-merge-basicblocks", "--return-at-end"),
    "-lineinfo": ("--generate-line-info",),
}


class OracleError(RuntimeError):
    """A tool of the oracle failed where the test needs it to succeed."""


class NotLinkable(OracleError):
    """The library in the place of this release's nvlink has no such option."""


@dataclass(frozen=True)
class Toolchain:
    """The directory that holds nvcc, ptxas and nvlink of the expected release."""

    bin: Path
    library: Path | None = None  # nvJitLink in nvlink's place

    def tool(self, name: str) -> str:
        return str(self.bin / name)

    def linker(self) -> list[str]:
        """The command that links, without its arguments."""
        if self.library is None:
            return [self.tool("nvlink")]
        return [sys.executable, library_link.__file__, str(self.library)]


@dataclass(frozen=True)
class NvlinkResult:
    """What one nvlink process did.

    `image` is None when it wrote no output file or a signal ended it: what such a process leaves is
    empty or cut, or there is no file, by chance.
    """

    code: int
    stdout: str
    stderr: str
    image: bytes | None


_release = DEFAULT


@contextlib.contextmanager
def release(name: str) -> Iterator[None]:
    """Inside of this, everything here is done with the tools of that release."""
    global _release  # noqa: PLW0603 -- what a test compares with, set around all that it does
    before, _release = _release, name
    try:
        yield
    finally:
        _release = before


def current() -> str:
    """The release whose tools everything here is done with."""
    return _release


def _folder(name: str) -> Path:
    """Where the tools of a release other than the default stand."""
    root = os.environ.get("PYLINK_ORACLES")
    return (Path(root) if root else ROOT / "build" / "oracles") / name / "nvidia"


def _candidates() -> list[Path]:
    site = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path}
    found = [Path(root) / "nvidia/cu13/bin" for root in sorted(filter(None, site))]
    if home := os.environ.get("CUDA_HOME"):
        found.append(Path(home) / "bin")
    if nvlink := shutil.which("nvlink"):
        found.append(Path(nvlink).parent)
    return found


def version() -> str:
    """What nvlink of the release at hand calls itself."""
    return VERSIONS.get(_release, _release)


def find() -> Toolchain | None:
    """The first complete toolchain whose nvlink is of the expected release, or None."""
    return find_release(_release)


@functools.cache
def find_release(name: str) -> Toolchain | None:
    """That of one release, or None."""
    if name in BY_LIBRARY:
        return _find_library(_folder(name))
    for path in [_folder(name) / "cu13/bin", *(_candidates() if name == DEFAULT else [])]:
        # Without the profile, nvcc is a script that starts the one of another directory.
        if not all((path / name).is_file() for name in ("nvcc", "nvcc.profile", "ptxas", "nvlink")):
            continue
        version = subprocess.run(
            [path / "nvlink", "--version"], capture_output=True, text=True, check=False
        )
        if f"V{VERSIONS.get(name, name)}" in version.stdout:
            return Toolchain(path)
    return None


def _find_library(folder: Path) -> Toolchain | None:
    """The toolchain in wheels of CUDA 12, each of which has a folder for itself."""
    library = folder / "nvjitlink/lib/libnvJitLink.so.12"
    tools = folder / "cuda_nvcc/bin"
    return Toolchain(tools, library) if library.is_file() and (tools / "ptxas").is_file() else None


def toolchain() -> Toolchain:
    """The toolchain, or OracleError."""
    found = find()
    if found is None:
        how = "pip install '.[oracle]'" if _release == DEFAULT else "scripts/install_oracle.py"
        raise OracleError(f"no nvcc, ptxas and nvlink V{version()} ({how})")
    return found


def optional_tool(name: str) -> str | None:
    """A CUDA tool whose release does not matter, such as nvdisasm, or None."""
    for path in _candidates():
        if (path / name).is_file():
            return str(path / name)
    return shutil.which(name)


needs_oracle = pytest.mark.skipif(
    not REQUIRED and find() is None,
    reason=f"needs nvcc, ptxas and nvlink {NVLINK_RELEASE}: pip install '.[oracle]'",
)


def others() -> list[str]:
    """The releases besides the default that tests compare with nvlink of.

    Those of PYLINK_REQUIRE_RELEASES (`make test` asks for one, `make test-releases` for all), whose
    absence then fails the tests, and what else is installed.
    """
    return [name for name in _installed() if name not in BY_LIBRARY]


def patches() -> list[str]:
    """Patch levels that PYLINK_REQUIRE_RELEASES asks for, or that are installed."""
    asked = os.environ.get("PYLINK_REQUIRE_RELEASES", "").split()
    return [name for name in PATCHES if name in asked or find_release(name) is not None]


def by_library() -> list[str]:
    """Those of which nvJitLink stands in nvlink's place."""
    return [name for name in _installed() if name in BY_LIBRARY]


def _installed() -> list[str]:
    asked = os.environ.get("PYLINK_REQUIRE_RELEASES", "").split()
    return [
        name
        for name in VERSIONS
        if name != DEFAULT and (name in asked or find_release(name) is not None)
    ]


def device_runtime() -> Path:
    """The folder of libcudadevrt.a."""
    root = toolchain().bin.parent
    places = (root / "lib", root / "lib64", root.parent / "cuda_runtime/lib")
    found = [path for path in places if (path / "libcudadevrt.a").is_file()]
    if not found:
        raise OracleError("no libcudadevrt.a beside nvlink (pip install '.[oracle]')")
    return found[0]


def cache_root() -> Path:
    """Where compiled files are kept between runs: PYLINK_ORACLE_CACHE or the temp directory."""
    root = os.environ.get("PYLINK_ORACLE_CACHE")
    return Path(root) if root else Path(tempfile.gettempdir()) / f"pylink-oracle-{os.getuid()}"


def _cached(suffix: str, key: Sequence[str]) -> Path:
    made_by = f"V{version()}"
    digest = hashlib.sha256("\0".join((made_by, *key)).encode()).hexdigest()
    return cache_root() / digest[:2] / f"{digest[:32]}{suffix}"


def _compile(target: Path, name: str, text: str, argv: Sequence[str]) -> None:
    """Run a compiler on `text` as the file `name` and move what it makes to `target`.

    Outputs with debug data hold paths and the time of the source, so all follow from the content.
    Several processes may fill the cache at once: one compiles, the others wait for its file.
    """
    folder = target.with_suffix(".d")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.is_file():
            return
        (folder / name).write_text(text)
        os.utime(folder / name, (SOURCE_TIME, SOURCE_TIME))
        command = [*argv, name, "-o", "made"]
        # nvcc starts what PATH has of its tools, whatever stands beside it.
        environment = {**os.environ, "PATH": f"{toolchain().bin}:{os.environ.get('PATH', '')}"}
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, env=environment
        )
        if done.returncode:
            raise OracleError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        os.replace(folder / "made", target)


def compile_ptx(source: str, arch: str, flags: Sequence[str] = (), *, name: str = "m.cu") -> str:
    """PTX of one CUDA source for compute_`arch`, cached by content."""
    if _release in BY_LIBRARY:
        with release(DEFAULT):
            return compile_ptx(source, arch, flags, name=name)
    target = _cached(".ptx", ("ptx", source, arch, name, *flags))
    if not target.is_file():
        argv = [toolchain().tool("nvcc"), "-rdc=true", "-ptx", f"-arch=compute_{arch}", *flags]
        _compile(target, name, source, argv)
    return target.read_text()


def assemble(
    ptx: str, arch: str, flags: Sequence[str] = (), *, ptxas: str | None = None, ewp: bool = False
) -> bytes:
    """Relocatable cubin of one PTX text for sm_`arch`, cached by content; flags are nvcc's.

    `ptxas` is that of another release, if not the one beside nvlink. With `ewp` it is that of a
    whole program.
    """
    if _release in BY_LIBRARY and ptxas is None:
        ptx = PTX_VERSION.sub(rf"\g<1>{BY_LIBRARY[_release]}", ptx, count=1)
    by = (*((ptxas,) if ptxas else ()), *(("-ewp",) if ewp else ()))
    target = _cached(".cubin", ("cubin", ptx, arch, *flags, *by))
    if not target.is_file():
        argv = [
            ptxas or toolchain().tool("ptxas"),
            f"-arch=sm_{arch}",
            "-m64",
            "-ewp" if ewp else "--compile-only",
        ]
        for flag in flags:
            argv += PTXAS_FLAGS.get(flag, (flag,))
        _compile(target, "in.ptx", ptx, argv)
    return target.read_bytes()


def compile(source: str, arch: str, flags: Sequence[str] = (), *, name: str = "m.cu") -> bytes:
    """Relocatable cubin for sm_`arch` of a CUDA source, or of PTX when `name` ends in .ptx."""
    if name.endswith(".ptx"):
        return assemble(source, arch, flags)
    text = compile_ptx(source, PTX_ARCH[arch], flags, name=name)
    return assemble(text, arch, [flag for flag in flags if not flag.startswith("-D")])


def compile_whole(source: str, arch: str, flags: Sequence[str] = ()) -> bytes:
    """Cubin of a whole program that may call the device runtime, as `nvcc -ewp` makes it; cached.

    Flags are nvcc's, those with a leading `-Xptxas=` ptxas's alone.
    """
    virtual = PTX_ARCH[arch]
    front = [flag for flag in flags if not flag.startswith("-Xptxas=")]
    text = _cached(".ptx", ("whole", source, virtual, *front))
    if not text.is_file():
        argv = [toolchain().tool("nvcc"), "-ewp", "-ptx", f"-arch=compute_{virtual}", *front]
        _compile(text, "m.cu", source, argv)
    return assemble(text.read_text(), arch, [f.removeprefix("-Xptxas=") for f in flags], ewp=True)


def compile_host(source: str, arch: str, flags: Sequence[str] = (), *, name: str = "m.cu") -> bytes:
    """Host object with code and PTX for `arch` of a CUDA source, as `nvcc -c` makes it; cached."""
    target = _cached(".o", ("host", source, arch, name, *flags))
    if not target.is_file():
        argv = [toolchain().tool("nvcc"), "-rdc=true", "-c", f"-arch=sm_{arch}", *flags]
        _compile(target, name, source, argv)
    return target.read_bytes()


def compile_ltoir(source: str, flags: Sequence[str] = (), *, name: str = "m.cu") -> bytes:
    """LTO-IR of a CUDA source for all archs from sm_80 on; cached."""
    target = _cached(".ltoir", ("ltoir", source, name, *flags))
    if not target.is_file():
        argv = [toolchain().tool("nvcc"), "-rdc=true", "-dlto", "-ltoir", "-arch=sm_80", *flags]
        _compile(target, name, source, argv)
    return target.read_bytes()


def run(argv: Sequence[str], cwd: Path) -> None:
    """Run a command in `cwd`; OracleError when it fails."""
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OracleError(f"{' '.join(argv)}\n{done.stdout}{done.stderr}")


def run_nvlink(
    argv: Sequence[str], cwd: Path, output: str | None = None, *, seconds: float | None = None
) -> NvlinkResult:
    """Run nvlink with `argv` in `cwd`; `output` names the file whose bytes become the image.

    TimeoutExpired when it takes longer than `seconds`, NotLinkable for an option that what stands
    in nvlink's place does not have.
    """
    done = subprocess.run(
        [*toolchain().linker(), *argv],
        cwd=cwd,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
        timeout=seconds,
    )
    if toolchain().library is not None and done.returncode == library_link.UNKNOWN:
        raise NotLinkable(done.stderr)
    path = cwd / output if output else None
    ended = done.returncode >= 0
    image = path.read_bytes() if ended and path and path.is_file() else None
    return NvlinkResult(done.returncode, done.stdout, done.stderr, image)


def link(cubins: Sequence[bytes], arch: str, options: Sequence[str] = ()) -> NvlinkResult:
    """nvlink's result for `cubins`, which it sees as m0.cubin, m1.cubin and so on."""
    with tempfile.TemporaryDirectory(prefix="pylink-oracle-") as folder:
        cwd = Path(folder)
        names = [f"m{i}.cubin" for i in range(len(cubins))]
        for name, data in zip(names, cubins, strict=True):
            (cwd / name).write_bytes(data)
        argv = [f"-arch=sm_{arch}", *options, *names, "-o", "out.cubin"]
        return run_nvlink(argv, cwd, "out.cubin")
