"""XXH3-128 of the package xxhash, for native code.

The digests of a build's sections are millions of calls, most of them for few bytes: as calls of
Python they cost as much as reading the files. The extension in the package has the functions of
xxhash.h, which a kernel calls without the interpreter. Where a build of it hides them, `hasher`
is 0 and `fill` calls the package.
"""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any

from pylink._native.sectionindex import list_sections
from pylink.command.packages import need
from pylink.fleet.columns import DIGEST_SIZE, SECTIONS

if TYPE_CHECKING:
    from pylink._native.sectionindex import Columns

# The first chooses by the processor's instructions.
NAMES = ("XXH3_128bits_dispatch", "XXH3_128bits")


@functools.cache
def hasher() -> int:
    """The address of the function, or 0."""
    need("xxhash")
    library = ctypes.CDLL(need("xxhash._xxhash").__file__)
    for name in NAMES:
        function = getattr(library, name, None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value or 0
    return 0


def list_hashed(arena: bytes, extents: bytes, first: int) -> Columns:
    """What list_sections returns, with digests."""
    address = hasher()
    found = list_sections(arena, extents, first, address)
    return found if address else fill(arena, extents, first, found)


def fill(arena: bytes, extents: bytes, first: int, found: Columns) -> Columns:
    """The same tables with digests that the package computes."""
    np, xxhash = need("numpy"), need("xxhash")
    columns = dict(zip(SECTIONS, found[1], strict=True))
    objects, offsets, sizes = (
        np.frombuffer(columns[name], "<i8") for name in ("object", "offset", "stored")
    )
    starts = np.frombuffer(extents, "<i8")[::2][objects - first] + offsets
    view = memoryview(arena)
    digests = bytearray(DIGEST_SIZE * len(sizes))
    digest: Any = xxhash.xxh3_128_digest
    for row, (start, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=True)):
        place = DIGEST_SIZE * row
        digests[place : place + DIGEST_SIZE] = digest(view[start : start + size])
    columns["digest"] = bytes(digests)
    return found[0], tuple(columns.values()), *found[2:]
