"""Six kinds of links of any size, with which `benchmarks/check_growth.py` checks forecasts.

Each kind is a group of modules, compiled by nvcc, and as many copies of it as a link needs (see
`benchmarks.inputs`). The kinds differ in what a link spends its time on.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from helpers import oracle

from benchmarks import group
from benchmarks.inputs import copy_of, name_of

MODULES = group.MODULES
# Number of members of an archive.
MEMBERS = 5

# A module with weak kernels. Several files have it, so the link omits (folds) repeated sections.
FOLDING = """\
template <int N> __global__ void blend(float *field, float by)
{
    float sum = field[threadIdx.x];
    #pragma unroll 1
    for (int i = 0; i < N; ++i)
        sum = sum * by + N;
    field[threadIdx.x] = sum;
}
template __global__ void blend<1>(float *, float);
template __global__ void blend<2>(float *, float);
template __global__ void blend<3>(float *, float);
template __global__ void blend<4>(float *, float);
"""


def _modules(body: str) -> list[str]:
    """Return the CUDA sources of a group of MODULES modules, each made from this body."""
    return [group.text_of(body, number) for number in range(MODULES)]


def _large() -> list[str]:
    """Return modules of 60 kernels each."""
    return _modules(group.with_kernels(60))


def _folding() -> list[str]:
    """Return eight modules with the same kernels, and two different ones."""
    distinct = _modules(group.BODIES["15KB"])
    return [FOLDING] * (MODULES - 2) + distinct[MODULES - 2 :]


@dataclass(frozen=True, slots=True)
class Kind:
    """Links of one kind.

    `texts` returns the sources of the modules of a group, `flags` are options of the compiler.
    `archs` are the targets, `counts` the numbers of modules, each twice the one before. With
    `in_archives` the modules are host objects in archives.
    """

    name: str
    texts: Callable[[], list[str]]
    flags: tuple[str, ...]
    archs: tuple[str, ...]
    counts: tuple[int, ...]
    in_archives: bool = False


KINDS = (
    Kind(
        "debug", lambda: _modules(group.BODIES["15KB"]), ("-G",), ("90", "100"), (24, 48, 96, 192)
    ),
    Kind(
        "line info",
        lambda: _modules(group.BODIES["15KB"]),
        ("-lineinfo",),
        ("90a", "100"),
        (60, 120, 240, 480),
    ),
    Kind("many small", lambda: _modules(group.TINY), (), ("90", "120"), (400, 800, 1600, 3200)),
    Kind("few large", _large, ("-lineinfo",), ("90", "100"), (8, 16, 32)),
    Kind(
        "archives",
        lambda: _modules(group.BODIES["15KB"]),
        ("-lineinfo", "-compress-mode=none"),
        ("90", "100"),
        (40, 80, 160, 320),
        in_archives=True,
    ),
    Kind("foldable", _folding, (), ("100", "120"), (60, 120, 240, 480)),
)


def inputs_of(kind: Kind, arch: str, count: int) -> tuple[Path, list[str]]:
    """Return a folder, and the names of inputs with the first `count` modules, made if missing."""
    texts = kind.texts()
    recipe = (Path(__file__).read_text(), Path(group.__file__).read_text(), *texts, *kind.flags)
    digest = hashlib.sha256("\0".join((*recipe, oracle.NVLINK_RELEASE)).encode()).hexdigest()
    folder = oracle.cache_root() / "doubled" / digest[:16] / f"{kind.name}-{arch}".replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    compile_one = oracle.compile_host if kind.in_archives else oracle.compile
    suffix = ".o" if kind.in_archives else ".cubin"
    names = [f"{name_of(i // MODULES)}_m{i % MODULES}{suffix}" for i in range(count)]
    compiled: dict[int, bytes] = {}
    for i, name in enumerate(names):
        if not (folder / name).is_file():
            number = i % MODULES
            if number not in compiled:
                source = f"{group.GROUP}_m{number}.cu"
                compiled[number] = compile_one(texts[number], arch, kind.flags, name=source)
            _write(folder / name, copy_of(compiled[number], i // MODULES))
    return folder, _archives(folder, names) if kind.in_archives else names


def _archives(folder: Path, names: Sequence[str]) -> list[str]:
    """Put objects into archives of MEMBERS each, and return the names of the archives."""
    archives = []
    for first in range(0, len(names), MEMBERS):
        members = names[first : first + MEMBERS]
        archive = f"lib{members[0][:-2]}_{len(members)}.a"
        if not (folder / archive).is_file():
            oracle.run(["ar", "rcD", archive, *members], folder)
        archives.append(archive)
    return archives


def _write(path: Path, data: bytes) -> None:
    """Write a file atomically."""
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    partial.write_bytes(data)
    os.replace(partial, path)
