"""Runs the native rewriting of kernels on one file, and makes a file of the result."""

from __future__ import annotations

import struct

from helpers.exits_reference import Object

from pylink._native import elfread, inputfiles
from pylink._native.exits import rewrite_exits as rewrite_native
from pylink._native.results import ObjectTables
from pylink.tables import section_name


class Refused(ValueError):
    """The reader refuses the file; `reason` is a ReadFault."""

    def __init__(self, reason: int) -> None:
        super().__init__(f"reason {reason}")
        self.reason = reason


class MalformedKernel(ValueError):
    """The rewriting refuses a section of the file."""

    def __init__(self, section: str, offset: int, reason: str) -> None:
        super().__init__(f"{section}+{offset:#x}: {reason}")
        self.section = section
        self.reason = reason


def read(image: bytes) -> ObjectTables:
    """Return the tables of a file; Refused if the reader refuses it."""
    arena, extents, _, _ = inputfiles.read_files([None], [len(image)], [image])
    files, sections, symbols, faults = elfread.parse(arena, extents)
    if faults:
        raise Refused(faults[0].reason)
    return ObjectTables(arena, files, sections, symbols)


def rewrite(objects: ObjectTables, *modes: int) -> ObjectTables:
    """Return the tables after rewriting in these modes; `objects` itself if nothing changed."""
    arena, sections, symbols, faults, _ = rewrite_native(objects, [(0, mode) for mode in modes])
    for _, section, offset, reason in faults:
        raise MalformedKernel(section_name(objects, section), offset, reason)
    if arena is objects.arena:
        return objects
    rewritten = ObjectTables(arena, objects.files, sections, symbols)
    broken = elfread.check_again(rewritten, [0])
    if broken:
        raise Refused(broken[0].reason)
    return rewritten


def rewrite_exits(image: bytes, mode: int) -> bytes:
    """Return the file with changed sections after its end; `image` itself if nothing changed."""
    objects = read(image)
    rewritten = rewrite(objects, mode)
    if rewritten is objects:
        return image
    file = Object(image)
    for section, row in zip(file.sections, rewritten.sections, strict=True):
        if row.offset:
            section.put(rewritten.arena[row.offset : row.offset + row.size])
    table = bytearray(file.symtab.data)
    for index, symbol in enumerate(rewritten.symbols):
        struct.pack_into("<Q", table, 24 * index + 16, symbol.size)
    file.symtab.put(bytes(table))
    return file.file()
