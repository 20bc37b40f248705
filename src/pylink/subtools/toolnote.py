"""Removes file names from the tool note of a cubin that ptxas -g made.

With -g, ptxas records the name of its output, and input and output among its options, all without
directories. nvlink compiles in memory, so its note has `elf.o` and no files. pylink passes files as
`/proc/self/fd/N`, so the names in the note would be numbers of descriptors.
"""

from __future__ import annotations

import os
import struct

from pylink._native.elfheaders import Section, read_sections
from pylink.facts.elf import NT_TKINFO, SHF_ALLOC, SHT_NOTE, round_up
from pylink.facts.records import NOTE_HEADER, SHDR, TOOL_NOTE

# The name of an output file in memory in nvlink's notes.
NAME_IN_MEMORY = b"elf.o"


def remove_file_names(cubin: bytes, source: str, result: str) -> bytes:
    """Return the cubin with the tool note that a compilation in memory would have.

    `source` and `result` are the paths of input and output that ptxas was given. The note and its
    section get shorter. Sections directly after it move toward the start as far as their alignment
    allows, unless one is in a segment, and the file keeps its size. Data without such a note is
    returned unchanged.
    """
    names = [os.path.basename(path).encode() for path in (source, result)]
    try:
        return _rewrite_note(bytearray(cubin), *names)
    except (struct.error, ValueError):
        return cubin


def _rewrite_note(cubin: bytearray, source: bytes, result: bytes) -> bytes:
    """Remove the names of input and output from the tool note.

    Raises struct.error or ValueError for a damaged note.
    """
    sections = read_sections(cubin).sections
    for section in sections:
        offset, size = section.offset, section.size
        if section.type != SHT_NOTE or section.stored < 0:
            continue
        name_size, text_size, kind = NOTE_HEADER.unpack_from(cubin, offset)
        start = offset + NOTE_HEADER.size + round_up(name_size, 4)
        if kind != NT_TKINFO or start + text_size != offset + size:
            continue
        record = _rewrite_record(bytes(cubin[start : start + text_size]), source, result)
        if len(record) > text_size:
            raise ValueError("the note would grow")
        cubin[start : start + text_size] = record.ljust(text_size, b"\0")
        NOTE_HEADER.pack_into(cubin, offset, name_size, len(record), kind)
        new_size = size - text_size + len(record)
        _rewrite_header(cubin, section, offset, new_size)
        _close_gap(cubin, sections, section, offset + new_size)
    return bytes(cubin)


def _close_gap(cubin: bytearray, sections: list[Section], note: Section, end: int) -> None:
    """Move the sections that directly follow the note to `end`, the offset at which it now ends.
    If one of them is part of a segment, none moves.
    """
    old_end, moved = note.offset + note.size, []
    later_sections = (
        section for section in sections if section.stored > 0 and section.offset > note.offset
    )
    for section in sorted(later_sections, key=lambda section: section.offset):
        if section.offset != round_up(old_end, section.align):
            break
        start = round_up(end, section.align)
        if start == section.offset:
            break
        if section.flags & SHF_ALLOC:
            return
        moved.append((section, start))
        old_end, end = section.offset + section.size, start + section.size
    for section, start in moved:
        cubin[start : start + section.size] = cubin[section.offset : section.offset + section.size]
        _rewrite_header(cubin, section, start, section.size)
    cubin[end:old_end] = bytes(old_end - end)


def _rewrite_header(cubin: bytearray, section: Section, offset: int, size: int) -> None:
    """Give a section another offset and size in the file."""
    name, kind, flags, addr, _, _, *rest = SHDR.unpack_from(cubin, section.header)
    SHDR.pack_into(cubin, section.header, name, kind, flags, addr, offset, size, *rest)


def _rewrite_record(record: bytes, source: bytes, result: bytes) -> bytes:
    """Return the contents of a tool note without file names; unchanged if another output is named.
    The first string of a note is the name of the output, the last one has the options.
    """
    version, *starts = TOOL_NOTE.unpack_from(record)
    text = record[TOOL_NOTE.size :]
    strings = [text[start : text.index(b"\0", start)] for start in starts]
    if strings[0] != result:
        return record
    strings[0] = NAME_IN_MEMORY
    strings[-1] = strings[-1].removeprefix(source + b" ").replace(b"-o " + result + b" ", b"", 1)
    starts = [sum(len(string) + 1 for string in strings[:number]) for number in range(len(strings))]
    packed = TOOL_NOTE.pack(version, *starts) + b"".join(string + b"\0" for string in strings)
    return packed.ljust(round_up(len(packed), 4), b"\0")
