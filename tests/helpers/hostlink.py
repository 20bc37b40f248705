"""Host programs with objects of device-link steps, which print what the runtime registers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from helpers import oracle

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pytest

    needs_host_compiler: pytest.MarkDecorator

RECORDER = Path(__file__).with_name("registrations.c")
LINKERS = [name for name in ("bfd", "gold", "lld", "mold") if shutil.which(f"ld.{name}")]
# Sections whose headers are compared.
SECTIONS = ("__nv_module_id", ".nv_fatbin", ".nvFatBinSegment", ".note.GNU-stack", ".init_array")


def __getattr__(name: str) -> object:
    """Return the marker `needs_host_compiler`, made when a test first uses it, as in `oracle`."""
    if name != "needs_host_compiler":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import pytest  # noqa: PLC0415 -- see above

    marker = pytest.mark.skipif(
        not oracle.REQUIRED and not shutil.which("g++"), reason="needs g++: apt install g++"
    )
    globals()[name] = marker
    return marker


# Three units: a kernel with a device function of another unit, a static kernel, a variable.
UNITS = {
    "first.cu": """
extern __device__ int scale(int);
__global__ void first(int *p) { *p = scale(*p); }
template <typename T> __global__ void typed(T *p) { *p += T(1); }
template __global__ void typed<float>(float *);
""",
    "second.cu": """
__device__ int factor = 3;
__constant__ int offsets[4];
__device__ int scale(int x) { return x * factor + offsets[x & 3]; }
static __global__ void hidden(int *p) { *p += factor; }
void launch(int *p) { hidden<<<1, 1>>>(p); }
""",
    "third.cu": """
extern __device__ int factor;
namespace { __device__ int own; }
__global__ void third(int *p) { *p += factor + own; }
""",
}


def run(folder: Path, *words: str | Path, status: int = 0) -> str:
    """Return the output of a command, which must end with this status."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == status, f"{done.returncode}: {words}\n{done.stdout}"
    return done.stdout


def nvcc(folder: Path, *words: str, status: int = 0) -> str:
    """Return the output of nvcc, which must end with this status."""
    return run(folder, oracle.toolchain().tool("nvcc"), *words, status=status)


def compile_units(
    folder: Path, archs: Sequence[str], units: dict[str, str] = UNITS, *flags: str
) -> list[str]:
    """Compile the units for all of these architectures; return the names of the objects."""
    names = []
    for name, text in units.items():
        # Ids depend on paths and contents, so objects are compiled in the folder of the link.
        (folder / name).write_text(text)
        target = f"{name.rpartition('.')[0]}.o"
        words = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in archs]
        nvcc(folder, "-rdc=true", *words, "-Xcompiler=-fPIC", *flags, "-c", name, "-o", target)
        names.append(target)
    return names


def compile_recorder(folder: Path) -> str:
    """Compile the recorder, which prints registrations, and return its object."""
    run(folder, "gcc", "-O1", "-fPIC", "-w", "-c", str(RECORDER), "-o", "recorder.o")
    return "recorder.o"


def record(folder: Path, program: str) -> str:
    """Run a program that is linked with the recorder; return the lines about registrations."""
    return run(folder, folder / program)


def without_hash(lines: str) -> str:
    """Return the lines without the hash of the linked container, whose tool notes differ."""
    return re.sub(r"(linked: \d+ bytes, hash )\w+", r"\1-", lines)


def symbols(folder: Path, file: str) -> list[tuple[str, ...]]:
    """Return the global and undefined symbols: type, binding, visibility, whether defined, name."""
    rows = []
    for line in run(folder, "readelf", "-sW", file).splitlines():
        fields = line.split()
        if (
            len(fields) == 8
            and fields[0] != "Num:"
            and fields[4] != "LOCAL"
            and fields[7] != "_GLOBAL_OFFSET_TABLE_"
        ):
            defined = "undefined" if fields[6] == "UND" else "defined"
            rows.append((fields[3], fields[4], fields[5], defined, fields[7]))
    return sorted(rows)


def sections(folder: Path, file: str) -> dict[str, tuple[str, str, str]]:
    """Return the type, flags and alignment of each section of SECTIONS."""
    rows = {}
    pattern = r"\] (\S+) +(\w+) +\w+ \w+ \w+ \w+ +([A-Za-z]*) +\d+ +\d+ +(\d+)$"
    text = run(folder, "readelf", "-SW", file)
    for name, kind, flags, align in re.findall(pattern, text, re.MULTILINE):
        if name in SECTIONS:
            rows[name] = (kind, flags, align)
    return rows


def contents(folder: Path, file: str, section: str) -> bytes:
    """Return the bytes of a section."""
    target = folder / "section.bin"
    target.unlink(missing_ok=True)
    copy = os.fspath(target)
    run(folder, "objcopy", "--dump-section", f"{section}={copy}", file, os.devnull)
    return target.read_bytes()
