"""Cubins for benchmarks: one group is compiled, and copied as often as a link needs.

In a copy, the group's name in every symbol, section and file name is replaced, and so are the
hashes that distinguish local names and PTX sections, as if the compiler had compiled another group.
The new text has the same length, so that a copy is a cubin that ptxas could have written, and costs
no more than writing the file.
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
    """Return a cubin of group 0 with its names changed to those of group `number`."""
    if number == 0:
        return cubin
    copied = cubin.replace(GROUP.encode(), name_of(number).encode())
    for pattern, digits in ((INTERNAL, b"0123456789abcdef"), (PTX_TEXT, b"0123456789")):
        for old in sorted(set(pattern.findall(cubin))):
            copied = copied.replace(old, _like(old, digits, number))
    return copied


def name_of(number: int) -> str:
    """Return the name of a group."""
    return f"g{number:0{len(GROUP) - 1}}"


def _like(old: bytes, digits: bytes, number: int) -> bytes:
    """Return a hash to put in place of `old` in group `number`.

    It has the length and the first character of `old`; the others are from `digits`.
    """
    digest = hashlib.sha256(b"%d %b" % (number, old)).digest()
    return old[:1] + bytes(digits[byte % len(digits)] for byte in digest[: len(old) - 1])


def cubins(
    arch: str, size: str, count: int, flags: tuple[str, ...] = FLAGS
) -> tuple[Path, list[str]]:
    """Return a folder, and the names of the first `count` cubins in it; missing ones are made.

    `size` is a key of `group.BODIES`, `flags` are those of nvcc.
    """
    folder = oracle.cache_root() / "bench" / _recipe(size, flags) / f"sm_{arch}-{size}"
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{name_of(i // MODULES)}_m{i % MODULES}.cubin" for i in range(count)]
    missing = [i for i, name in enumerate(names) if not (folder / name).is_file()]
    if missing:
        group = [
            oracle.compile(text, arch, flags, name=name) for name, text in sources(size).items()
        ]
        for i in missing:
            partial = folder / f"{names[i]}.{os.getpid()}"
            partial.write_bytes(copy_of(group[i % MODULES], i // MODULES))
            os.replace(partial, folder / names[i])
    return folder, names


def _recipe(size: str, flags: tuple[str, ...]) -> str:
    """Return a hash of everything on which the contents of the cubins depend."""
    recipe = (Path(__file__).read_text(), *flags, *sources(size).values(), oracle.NVLINK_RELEASE)
    return hashlib.sha256("\0".join(recipe).encode()).hexdigest()[:16]
