"""Cubins for benchmarks: one group compiled, and as many copies of it as a link needs.

A copy differs from the group in what the compiler would make different: the group's name, in every
symbol, section and file name, and the hashes that keep local names and PTX sections apart. All are
replaced by text of the same length, so a copy is a cubin as ptxas would write it and costs no more
than writing the file.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from helpers import oracle

from benchmarks.group import GROUP, MODULES, sources

FLAGS = ("-lineinfo",)
INTERNAL = re.compile(rb"_INTERNAL_([0-9a-f]{8})_")
PTX_TEXT = re.compile(rb"\.nv_debug_ptx_txt\.([0-9]+)")


def copy_of(cubin: bytes, number: int) -> bytes:
    """The module `cubin` of group 0 as that of group `number`."""
    if number == 0:
        return cubin
    made = cubin.replace(GROUP.encode(), name_of(number).encode())
    for pattern, digits in ((INTERNAL, b"0123456789abcdef"), (PTX_TEXT, b"0123456789")):
        for old in sorted(set(pattern.findall(cubin))):
            made = made.replace(old, _like(old, digits, number))
    return made


def name_of(number: int) -> str:
    """The name of a group."""
    return f"g{number:0{len(GROUP) - 1}}"


def _like(old: bytes, digits: bytes, number: int) -> bytes:
    """A hash of as many digits as `old`, another one for every group; its first digit stays."""
    fresh = hashlib.sha256(b"%d %b" % (number, old)).digest()
    return old[:1] + bytes(digits[byte % len(digits)] for byte in fresh[: len(old) - 1])


def cubins(arch: str, size: str, count: int) -> tuple[Path, list[str]]:
    """A folder and the names of the first `count` cubins in it, made when they are not there."""
    folder = oracle.cache_root() / "bench" / _recipe(size) / f"sm_{arch}-{size}"
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{name_of(i // MODULES)}_m{i % MODULES}.cubin" for i in range(count)]
    missing = [i for i, name in enumerate(names) if not (folder / name).is_file()]
    if missing:
        group = [
            oracle.compile(text, arch, FLAGS, name=name) for name, text in sources(size).items()
        ]
        for i in missing:
            partial = folder / f"{names[i]}.{os.getpid()}"
            partial.write_bytes(copy_of(group[i % MODULES], i // MODULES))
            os.replace(partial, folder / names[i])
    return folder, names


def _recipe(size: str) -> str:
    """A name for everything that the cubins follow from."""
    here = (Path(__file__).read_text(), *sources(size).values(), oracle.NVLINK_RELEASE)
    return hashlib.sha256("\0".join(here).encode()).hexdigest()[:16]
