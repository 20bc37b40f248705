"""A cubin as if it were loaded: its functions have addresses, which source counters can name.

Reports hold cubins in this form. `ncu` takes an address of 0 for a function that was not loaded and
shows no instructions of it.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from pylink.inspect.image import SYMBOL, Image
from pylink.report.model import Source

# Where the first function lies. Any address but 0 will do; this one is seen to be none of a file.
BASE = 0x7F00_0000_0000
_ALIGNMENT = 0x100
_EXECUTABLE = 4  # SHF_EXECINSTR
_STT_SECTION, _STT_FUNC = 3, 2
# Of the levels that Nsight Compute knows, that of its newest reports.
_SASS_LEVEL = 8


class Loaded(NamedTuple):
    """A cubin for a report, and the addresses of its functions by the names of their symbols."""

    source: Source
    addresses: dict[str, int]


def load(cubin: bytes) -> Loaded:
    """Give each function of a linked cubin an address. Raises MalformedCubin."""
    image = Image(cubin)
    starts = {}
    at = BASE
    for section in image.sections:
        if section.flags & _EXECUTABLE and not section.mercury:
            starts[section.index] = at
            at += -(-section.size // _ALIGNMENT) * _ALIGNMENT
    changed = bytearray(cubin)
    addresses = {}
    symtab = image.section(".symtab")
    if symtab is not None:
        for number, name in enumerate(image.symbols):
            place = symtab.offset + number * SYMBOL
            _, info, _, section_number, value, _ = struct.unpack_from("<IBBHQQ", cubin, place)
            start = starts.get(image.section_of_symbol(symtab, number, section_number))
            if start is None or info & 15 not in (_STT_SECTION, _STT_FUNC):
                continue
            struct.pack_into("<Q", changed, place + 8, start + value)
            if info & 15 == _STT_FUNC:
                addresses[name] = start + value
    major, minor = divmod(image.sm, 10)
    source = Source(binary=bytes(changed), sass_level=_SASS_LEVEL, sm_revision=major << 16 | minor)
    return Loaded(source, addresses)
