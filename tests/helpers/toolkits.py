"""Objects that name the CUDA toolkit that made them, and which one an output names."""

from __future__ import annotations

import struct

from helpers.cubin_builder import SHT_NOTE, Section, one_kernel

CUINFO_FLAGS = 0x01000000
EARLY_ABI = 0x33


def note(toolkit: int) -> bytes:
    return struct.pack("<III12s4H", 12, 8, 1000, b"NVIDIA Corp\0", 2, 80, toolkit, 0)


def cubin_by(toolkit: int, name: str = "kernel") -> bytes:
    """An object with one kernel for sm_80; 130 is CUDA 13.0."""
    cubin = one_kernel(name)
    cubin.section(Section(".note.nv.cuinfo", SHT_NOTE, note(toolkit), CUINFO_FLAGS))
    return cubin.build()


def toolkit_of(image: bytes) -> int:
    """The toolkit that the output names: in a note, before 13.0 in its header."""
    if image[7] == EARLY_ABI:
        return int.from_bytes(image[20:24], "little")
    places = [place for place in range(len(image)) if image.startswith(b"NVIDIA Corp\0", place)]
    notes = [struct.unpack_from("<II12s4H", image, place - 8) for place in places]
    return int(next(one[5] for one in notes if one[1] == 1000))
