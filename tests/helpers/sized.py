"""Builds files to measure: linked cubins, a library with sections, and a wheel."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

from helpers.cubin_builder import Cubin, Section
from helpers.fatbin_builder import host_object


def library(sections: list[tuple[str, bytes]], *, elf_type: int = 3, machine: int = 62) -> bytes:
    """Return an ELF file with these sections, by default a shared library for x86-64."""
    data = bytearray(host_object(sections, machine))
    data[16:18] = struct.pack("<H", elf_type)
    return bytes(data)


def wheel(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    """Write a wheel with these members, and return its path."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def linked(
    sm: int = 80,
    *names: str,
    code: bytes = bytes(range(256)) * 8,
    records: bytes = b"",
    data: bytes = b"",
    note: bytes = b"",
    registers: int = 8,
    debug: bytes = b"",
) -> bytes:
    """Return a linked cubin with kernels of these names.

    `records` come before each kernel's attribute records. `data`, `note` and `debug` are the
    contents of further sections.
    """
    cubin = Cubin()
    for name in names or ("kernel",):
        cubin.function(name, code=code, kernel=True, registers=registers)
    cubin.sections = [
        Section(**{**vars(section), "data": records + section.data})
        if section.name.startswith(".nv.info.")
        else section
        for section in cubin.sections
    ]
    if data:
        cubin.section(Section(".nv.global.init", 0x70000008, data, flags=3))
    if note:
        cubin.section(Section(".note.nv.tkinfo", 7, note))
    if debug:
        cubin.section(Section(".debug_line", 1, debug))
    image = bytearray(cubin.build())
    image[16:18] = struct.pack("<H", 2)
    image[48:52] = struct.pack("<I", 0x6000002 | sm << 8)
    return bytes(image)
