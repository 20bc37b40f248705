"""XXH3-128 of the package xxhash, called from native code.

The digests of a build's sections take millions of calls, most of them for few bytes. Calls from
Python would cost as much as reading the files. The package's extension has the functions of
xxhash.h, which a kernel calls without the interpreter. If a build of the package hides them,
`find_hasher` returns 0, and `add_digests` calls the package from Python.
"""

from __future__ import annotations

import functools
import os
from array import array
from typing import Any

from pylink._native.sectionindex import find_function, list_sections
from pylink.fleet.columns import SECTIONS
from pylink.packages.extras import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink._native.sectionindex import Columns

# Names of the hash function in xxhash's extension. The first one uses vector instructions.
NAMES = (b"XXH3_128bits_dispatch", b"XXH3_128bits")


@functools.cache
def find_hasher() -> int:
    """Return the address of xxhash's native hash function, or 0 if the package hides it."""
    library = os.fsencode(need("xxhash._xxhash").__file__)
    return next(filter(None, (find_function(library, name) for name in NAMES)), 0)


def list_hashed(arena: bytes, extents: bytes, first: int) -> Columns:
    """List the sections of cubins in an arena, with digests; `first` is the first one's number."""
    address = find_hasher()
    columns = list_sections(arena, extents, first, address)
    return columns if address else add_digests(arena, extents, first, columns)


def add_digests(arena: bytes, extents: bytes, first: int, section_columns: Columns) -> Columns:
    """Return `section_columns`, from list_sections, with digests that xxhash computes.

    The other arguments are those of list_sections; `first` is the number of the first cubin.
    """
    columns = dict(zip(SECTIONS, section_columns[1], strict=True))
    numbers = (array("q", columns[name]) for name in ("object", "offset", "stored"))
    starts = array("q", extents)[::2]
    view = memoryview(arena)
    digests = []
    digest: Any = need("xxhash").xxh3_128_digest
    for number, offset, size in zip(*numbers, strict=True):
        start = starts[number - first] + offset
        digests.append(digest(view[start : start + size]))
    columns["digest"] = b"".join(digests)
    return section_columns[0], tuple(columns.values()), *section_columns[2:]
