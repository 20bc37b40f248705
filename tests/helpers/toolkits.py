"""Objects with notes of the CUDA toolkit that compiled them, and the toolkit of an output."""

from __future__ import annotations

import struct

from helpers.cubin_builder import SHT_NOTE, Section, one_kernel

# Section flags of .note.nv.cuinfo and .note.nv.tkinfo.
CUINFO_FLAGS, TKINFO_FLAGS = 0x01000000, 0x02000000
EARLY_ABI = 0x33  # e_ident of files before 13.0, whose header names the toolkit


def note(toolkit: int) -> bytes:
    """Return a .note.nv.cuinfo note with a toolkit, such as 130."""
    return struct.pack("<III12s4H", 12, 8, 1000, b"NVIDIA Corp\0", 2, 80, toolkit, 0)


def tool_note(*strings: str) -> bytes:
    """Return a note of the tool that wrote a file: output, name, version, build, options."""
    offsets, text = [], b""
    for string in strings:
        offsets.append(len(text))
        text += string.encode() + b"\0"
    text += bytes(-len(text) % 4)
    head = struct.pack("<III12sI5I", 12, 24 + len(text), 2000, b"NVIDIA Corp\0", 2, *offsets)
    return head + text


def ptxas_note(version: str) -> bytes:
    """Return the tool note of a version of ptxas, such as 13.2.51."""
    release = version.rpartition(".")[0]
    version_text = f"Cuda compilation tools, release {release}, V{version}"
    return tool_note(
        "", "ptxas", version_text, f"Build cuda_{release}.r{release}/compiler.1_0", "-c "
    )


def cubin_by(toolkit: int, name: str = "kernel", *, tool: bytes = b"") -> bytes:
    """Return an object with a kernel for sm_80 of a toolkit (130: CUDA 13.0), and a `tool` note."""
    cubin = one_kernel(name)
    if tool:
        cubin.section(Section(".note.nv.tkinfo", SHT_NOTE, tool, TKINFO_FLAGS))
    cubin.section(Section(".note.nv.cuinfo", SHT_NOTE, note(toolkit), CUINFO_FLAGS))
    return cubin.build()


def toolkit_of(image: bytes) -> int:
    """Return the toolkit that a file names: in a note, or before 13.0 in its header."""
    if image[7] == EARLY_ABI:
        return int.from_bytes(image[20:24], "little")
    places = [place for place in range(len(image)) if image.startswith(b"NVIDIA Corp\0", place)]
    notes = [struct.unpack_from("<II12s4H", image, place - 8) for place in places]
    return int(next(note[5] for note in notes if note[1] == 1000))
