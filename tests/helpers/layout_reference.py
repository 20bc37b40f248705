"""A naive reference of the offsets of an output's sections, and of its program headers.

`.shstrtab` begins after the ELF header, and each section at the next multiple of its alignment, in
the order of the file. A section without bytes has an offset but takes no space. The section headers
begin at the next multiple of 8, the program headers follow, and the file ends there. The room that
family C (sm_100 and later) leaves after the string tables is described in docs/order.md, "The
second program".
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

EHDR, PHDR, SHDR = 64, 56, 64
WRITE, ALLOC, EXECUTE, MERCURY = 1, 2, 4, 0x10000000
PT_LOAD, PT_PHDR = 1, 6
RUN, CHANGE, READ = 1, 2, 4
FAMILY_C = 2


@dataclass
class Section:
    """A section of the output.

    `twin` is the number in the file of the section whose bytes it shares, -1 for none. `room` is
    the number of free bytes after it.
    """

    size: int
    align: int
    flags: int = 0
    nobits: bool = False
    twin: int = -1
    room: int = 0

    @property
    def bytes(self) -> int:
        """The size in the file."""
        return 0 if self.nobits else self.size

    @property
    def mode(self) -> int:
        """The permissions of the program header that loads it."""
        return READ | CHANGE * bool(self.flags & WRITE) | RUN * bool(self.flags & EXECUTE)


class Header(NamedTuple):
    """A program header: `flags` are permissions; the offset and both sizes are in bytes."""

    type: int
    flags: int
    offset: int
    file_size: int
    memory_size: int


class File(NamedTuple):
    """A layout: the offset of each section, that of the section headers, and the file's size."""

    offsets: list[int]
    table: int
    headers: list[Header]
    size: int


def round_up(offset: int, align: int) -> int:
    """Return the next multiple of an alignment; an alignment of 0 changes nothing."""
    return -(-offset // align) * align if align else offset


def load(flags: int, placed: list[tuple[Section, int]]) -> Header:
    """Return a program header for these sections: NOBITS follow in memory, each aligned."""
    start = placed[0][1]
    last, offset = placed[-1]
    end = memory = offset + last.bytes
    for section, _ in placed:
        if section.nobits:
            memory = round_up(memory, section.align) + section.size
    return Header(PT_LOAD, flags, start, end - start, memory - start)


def loads(sections: list[Section], offsets: list[int], family: int) -> list[Header]:
    """Return the PT_LOAD headers of a file.

    In family C there is one for each run of sections with the same permissions; in A and B one for
    sections that are not written, and one for the others.
    """
    placed = list(zip(sections, offsets, strict=True))
    if family == FAMILY_C:
        runs = groupby(placed, lambda at: at[0].flags & (ALLOC | MERCURY) == ALLOC and at[0].mode)
        return [load(mode, list(run)) for mode, run in runs if mode]
    allocated = [at for at in placed if at[0].flags & ALLOC]
    parts = (
        (READ | RUN, [at for at in allocated if not at[0].flags & WRITE]),
        (READ | CHANGE, [at for at in allocated if at[0].flags & WRITE]),
    )
    return [load(mode, part) for mode, part in parts if part]


def place_reference(sections: list[Section], family: int, *, executable: bool) -> File:
    """Return the layout of an output with these sections, in the order of the file."""
    at = EHDR
    offsets: list[int] = []
    for section in sections:
        if section.twin >= 0:
            offsets.append(offsets[section.twin])
            continue
        offsets.append(round_up(at, section.align))
        at = offsets[-1] + section.bytes + section.room
    table = round_up(at, 8)
    at = table + SHDR * (len(sections) + 1)
    if not executable:
        return File(offsets, table, [], at)
    parts = loads(sections, offsets, family)
    size = PHDR * (len(parts) + 2)
    if family == FAMILY_C:
        ends = [Header(kind, READ, at, size, size) for kind in (PT_PHDR, PT_LOAD)]
        return File(offsets, table, [*ends, *parts], at + size)
    first, last = (Header(kind, READ | RUN, at, size, size) for kind in (PT_PHDR, PT_LOAD))
    return File(offsets, table, [first, *parts, last], at + size)
