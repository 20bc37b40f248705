"""NVIDIA's CUDA tools, with which tests compare: compile a source to a cubin, link with nvlink.

The tools are found in the `oracle` extra (wheel nvidia-cuda-nvcc), in CUDA_HOME or in PATH, in that
order, and are used only if their nvlink is release 13.0.88, since others link differently.
`scripts/install_oracle.py` installs tools of other releases, each in a folder of its own in
build/oracles (PYLINK_ORACLES). Inside of `with release("13.5")` all functions here use those of
that release. Tests that need the tools of 13.0.88 have the marker `needs_oracle`; with
PYLINK_REQUIRE_ORACLE=1 they fail without the tools, instead of being skipped. Tests of other
releases run for each of `others()`.
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

from helpers import library_link

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pytest

    needs_oracle: pytest.MarkDecorator

ROOT = Path(__file__).resolve().parents[2]
# The version of each release's nvlink; `scripts/install_oracle.py` installs these.
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
# Other patch levels. The name of such a toolchain is its version.
PATCHES = ("13.0.48", "13.1.80", "13.2.51", "13.2.78", "13.3.33", "13.4.59")
# Releases whose nvlink and nvcc are not on the package index: their nvJitLink links
# (`library_link`), and their ptxas assembles PTX of 13.0, changed to the version given here.
BY_LIBRARY = {"12.9": "8.8"}
PTX_VERSION = re.compile(r"^(\s*\.version\s+)\S+", re.MULTILINE)
NVLINK_RELEASE = f"V{VERSIONS[DEFAULT]}"
SOURCE_TIME = 1_700_000_000  # time of change of every compiled source, in seconds since 1970
REQUIRED = os.environ.get("PYLINK_REQUIRE_ORACLE") == "1"

# By target: the architecture for which its PTX is compiled. One PTX serves several targets, since
# cicc takes ten times as long as ptxas.
PTX_ARCH = {"75": "75", "80": "80", "86": "80", "87": "80", "88": "80", "89": "80"}
PTX_ARCH |= {"90": "90", "90a": "90", "100": "100", "100a": "100", "100f": "100", "103": "100"}
PTX_ARCH |= {"103a": "100", "103f": "100", "110": "100", "110a": "100", "110f": "100"}
PTX_ARCH |= {"120": "120", "120a": "120", "120f": "120", "121": "120", "121a": "120", "121f": "120"}
ARCHS = tuple(PTX_ARCH)

# Flags of nvcc for the compiler of CUDA C++, and the flags that nvcc passes to ptxas for each.
PTXAS_FLAGS = {
    "-G": ("-g", "--dont-merge-basicblocks", "--return-at-end"),
    "-lineinfo": ("--generate-line-info",),
}


class OracleError(RuntimeError):
    """A tool failed although the test needs its result."""


class NotLinkable(OracleError):
    """The library in place of this release's nvlink does not have an option."""


@dataclass(frozen=True)
class Toolchain:
    """The directory with nvcc, ptxas and nvlink of one release."""

    bin: Path
    library: Path | None = None  # nvJitLink, if it is used in place of nvlink

    def tool(self, name: str) -> str:
        """Return the path of a tool."""
        return str(self.bin / name)

    def linker(self) -> list[str]:
        """Return the command that links, without its arguments."""
        if self.library is None:
            return [self.tool("nvlink")]
        return [sys.executable, library_link.__file__, str(self.library)]


@dataclass(frozen=True)
class NvlinkResult:
    """The result of one run of nvlink.

    `image` is None if it wrote no output file, or if a signal ended it, since the file may then be
    incomplete.
    """

    code: int
    stdout: str
    stderr: str
    image: bytes | None


_release = DEFAULT


@contextlib.contextmanager
def release(name: str) -> Iterator[None]:
    """Yield a context in which all functions of this module use the tools of a release."""
    global _release  # noqa: PLW0603 -- one setting for all functions, since tests nest their calls
    before, _release = _release, name
    try:
        yield
    finally:
        _release = before


def current() -> str:
    """Return the release whose tools are used at present."""
    return _release


def _folder(name: str) -> Path:
    """Return the folder with the tools of a release other than the default."""
    root = os.environ.get("PYLINK_ORACLES")
    return (Path(root) if root else ROOT / "build" / "oracles") / name / "nvidia"


def _candidates() -> list[Path]:
    """Return the directories in which the tools of the default release may be."""
    site = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path}
    places = [Path(root) / "nvidia/cu13/bin" for root in sorted(filter(None, site))]
    if home := os.environ.get("CUDA_HOME"):
        places.append(Path(home) / "bin")
    if nvlink := shutil.which("nvlink"):
        places.append(Path(nvlink).parent)
    return places


def version() -> str:
    """Return the version of the present release's nvlink."""
    return VERSIONS.get(_release, _release)


def find() -> Toolchain | None:
    """Return the toolchain of the present release; None if it is not installed."""
    return find_release(_release)


@functools.cache
def find_release(name: str) -> Toolchain | None:
    """Return the first complete toolchain of a release; None if it is not installed."""
    if name in BY_LIBRARY:
        return _find_library(_folder(name))
    for path in [_folder(name) / "cu13/bin", *(_candidates() if name == DEFAULT else [])]:
        # Without nvcc.profile, nvcc is a script that starts the nvcc of another directory.
        if not all((path / name).is_file() for name in ("nvcc", "nvcc.profile", "ptxas", "nvlink")):
            continue
        version = subprocess.run(
            [path / "nvlink", "--version"], capture_output=True, text=True, check=False
        )
        if f"V{VERSIONS.get(name, name)}" in version.stdout:
            return Toolchain(path)
    return None


def _find_library(folder: Path) -> Toolchain | None:
    """Return the toolchain in wheels of CUDA 12, each of which has a folder of its own."""
    library = folder / "nvjitlink/lib/libnvJitLink.so.12"
    tools = folder / "cuda_nvcc/bin"
    return Toolchain(tools, library) if library.is_file() and (tools / "ptxas").is_file() else None


def toolchain() -> Toolchain:
    """Return the toolchain of the present release; OracleError if it is not installed."""
    installed = find()
    if installed is None:
        how = "pip install '.[oracle]'" if _release == DEFAULT else "scripts/install_oracle.py"
        raise OracleError(f"no nvcc, ptxas and nvlink V{version()} ({how})")
    return installed


def optional_tool(name: str) -> str | None:
    """Return the path of a CUDA tool of any release, such as nvdisasm; None if not found."""
    for path in _candidates():
        if (path / name).is_file():
            return str(path / name)
    return shutil.which(name)


def __getattr__(name: str) -> object:
    """Return the marker `needs_oracle`, made when a test first uses it.

    Programs that users run import this module, too, and the extra `oracle` has no pytest.
    """
    if name != "needs_oracle":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import pytest  # noqa: PLC0415 -- see above

    marker = pytest.mark.skipif(
        not REQUIRED and find() is None,
        reason=f"needs nvcc, ptxas and nvlink {NVLINK_RELEASE}: pip install '.[oracle]'",
    )
    globals()[name] = marker
    return marker


def others() -> list[str]:
    """Return the releases other than the default with whose nvlink tests compare.

    These are the installed ones, and those of PYLINK_REQUIRE_RELEASES (one for `make test`, all for
    `make test-releases`), for which tests fail if they are missing.
    """
    return [name for name in _installed() if name not in BY_LIBRARY]


def patches() -> list[str]:
    """Return the patch levels that PYLINK_REQUIRE_RELEASES requires, or that are installed."""
    asked = os.environ.get("PYLINK_REQUIRE_RELEASES", "").split()
    return [name for name in PATCHES if name in asked or find_release(name) is not None]


def by_library() -> list[str]:
    """Return the releases, which `others` omits, whose nvJitLink is used in place of nvlink."""
    return [name for name in _installed() if name in BY_LIBRARY]


def _installed() -> list[str]:
    """Return the releases and patch levels that are required or installed, except the default."""
    asked = os.environ.get("PYLINK_REQUIRE_RELEASES", "").split()
    return [
        name
        for name in VERSIONS
        if name != DEFAULT and (name in asked or find_release(name) is not None)
    ]


def device_runtime() -> Path:
    """Return the folder that contains libcudadevrt.a."""
    root = toolchain().bin.parent
    places = (root / "lib", root / "lib64", root.parent / "cuda_runtime/lib")
    directories = [path for path in places if (path / "libcudadevrt.a").is_file()]
    if not directories:
        raise OracleError("no libcudadevrt.a beside nvlink (pip install '.[oracle]')")
    return directories[0]


def cache_root() -> Path:
    """Return the folder of compiled files: PYLINK_ORACLE_CACHE, or one with temporary files."""
    root = os.environ.get("PYLINK_ORACLE_CACHE")
    return Path(root) if root else Path(tempfile.gettempdir()) / f"pylink-oracle-{os.getuid()}"


def _cached(suffix: str, key: Sequence[str]) -> Path:
    """Return the file of the cache for a key, which includes the present release."""
    made_by = f"V{version()}"
    digest = hashlib.sha256("\0".join((made_by, *key)).encode()).hexdigest()
    return cache_root() / digest[:2] / f"{digest[:32]}{suffix}"


def _compile(target: Path, name: str, text: str, argv: Sequence[str]) -> None:
    """Run a compiler on `text` as the file `name`, and move its output to `target`.

    Outputs with debug data contain the path and the time of the source, so these depend only on
    its contents.
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
        # nvcc starts its tools from PATH, even if others are beside it.
        environment = {**os.environ, "PATH": f"{toolchain().bin}:{os.environ.get('PATH', '')}"}
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, env=environment
        )
        if done.returncode:
            raise OracleError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        os.replace(folder / "made", target)


def compile_ptx(source: str, arch: str, flags: Sequence[str] = (), *, name: str = "m.cu") -> str:
    """Return the PTX of a CUDA source for compute_`arch`, cached by content."""
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
    """Return a relocatable cubin of a PTX text for sm_`arch`, cached by content; flags are nvcc's.

    `ptxas` is the path of another release's ptxas (default: the one beside nvlink). With `ewp` the
    cubin is that of a whole program.
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
    """Return a relocatable cubin for sm_`arch` of a CUDA source, or of PTX by its name."""
    if name.endswith(".ptx"):
        return assemble(source, arch, flags)
    text = compile_ptx(source, PTX_ARCH[arch], flags, name=name)
    return assemble(text, arch, [flag for flag in flags if not flag.startswith("-D")])


def compile_whole(source: str, arch: str, flags: Sequence[str] = ()) -> bytes:
    """Return the cubin of a whole program that may call the device runtime (`nvcc -ewp`); cached.

    Flags are nvcc's; those that start with `-Xptxas=` are for ptxas only.
    """
    virtual = PTX_ARCH[arch]
    front = [flag for flag in flags if not flag.startswith("-Xptxas=")]
    text = _cached(".ptx", ("whole", source, virtual, *front))
    if not text.is_file():
        argv = [toolchain().tool("nvcc"), "-ewp", "-ptx", f"-arch=compute_{virtual}", *front]
        _compile(text, "m.cu", source, argv)
    return assemble(text.read_text(), arch, [f.removeprefix("-Xptxas=") for f in flags], ewp=True)


def compile_host(source: str, arch: str, flags: Sequence[str] = (), *, name: str = "m.cu") -> bytes:
    """Return a host object with code and PTX for `arch` of a CUDA source (`nvcc -c`); cached."""
    target = _cached(".o", ("host", source, arch, name, *flags))
    if not target.is_file():
        argv = [toolchain().tool("nvcc"), "-rdc=true", "-c", f"-arch=sm_{arch}", *flags]
        _compile(target, name, source, argv)
    return target.read_bytes()


def compile_ltoir(source: str, flags: Sequence[str] = (), *, name: str = "m.cu") -> bytes:
    """Return the LTO-IR of a CUDA source for all architectures from sm_80 on; cached."""
    target = _cached(".ltoir", ("ltoir", source, name, *flags))
    if not target.is_file():
        argv = [toolchain().tool("nvcc"), "-rdc=true", "-dlto", "-ltoir", "-arch=sm_80", *flags]
        _compile(target, name, source, argv)
    return target.read_bytes()


def run(argv: Sequence[str], cwd: Path) -> None:
    """Run a command in `cwd`; OracleError if it fails."""
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OracleError(f"{' '.join(argv)}\n{done.stdout}{done.stderr}")


def run_nvlink(
    argv: Sequence[str], cwd: Path, output: str | None = None, *, seconds: float | None = None
) -> NvlinkResult:
    """Run nvlink with `argv` in `cwd`; `output` names the file whose bytes become the image.

    TimeoutExpired if it takes longer than `seconds`, NotLinkable for an option that the library in
    place of nvlink does not have.
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
    """Return nvlink's result for `cubins`, whose file names are m0.cubin, m1.cubin and so on."""
    with tempfile.TemporaryDirectory(prefix="pylink-oracle-") as folder:
        cwd = Path(folder)
        names = [f"m{i}.cubin" for i in range(len(cubins))]
        for name, data in zip(names, cubins, strict=True):
            (cwd / name).write_bytes(data)
        argv = [f"-arch=sm_{arch}", *options, *names, "-o", "out.cubin"]
        return run_nvlink(argv, cwd, "out.cubin")
