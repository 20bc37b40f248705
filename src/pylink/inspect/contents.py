"""Section contents as rows: the readers of each kind of section.

A reader is named after the rows that it returns; `find_reader` selects one by a section's name.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from pylink.diagnostics.stream import printable
from pylink.facts import elf
from pylink.facts.records import NOTE_HEADER, REL_INFO, RELA_INFO, SYM, TOOL_NOTE
from pylink.facts.releases import toolkit_name
from pylink.facts.relocations import relocation_name
from pylink.facts.rownumbers import CallBlock
from pylink.inspect.attributes import compat_records, info_records
from pylink.inspect.image import Image, MalformedCubin, Section, is_rel, is_relocations
from pylink.inspect.rows import (
    Call,
    Capsule,
    Note,
    NoteField,
    Prototype,
    Record,
    Relocation,
    Row,
    Symbol,
    Text,
)

Reader = Callable[[Image, Section], Sequence[Row]]

COMPAT = ".nv.compat"
CAPSULE = ".nv.capmerc.text."
SYMBOL_TABLES = (".symtab", ".nv.merc.symtab")
INFO_PREFIXES = (".nv.info", ".nv.merc.nv.info")

# Blocks of the call graph in which the last field of a row is the offset of a prototype.
PROTOTYPE_BLOCKS = (CallBlock.TAKEN, CallBlock.INDIRECT)
# Descriptions of the blocks of the call graph.
BLOCKS = {
    CallBlock.DIRECT: "calls",
    CallBlock.TAKEN: "address taken, and the prototype",
    CallBlock.INDIRECT: "calls through a pointer, and the prototype",
    CallBlock.CANDIDATE: "candidates of calls through a pointer",
}


def find_reader(section: Section) -> Reader | None:
    """Return the reader of a section's rows; None if it has only bytes."""
    name = section.name
    if name in SYMBOL_TABLES:
        return symbols
    if name in (".strtab", ".shstrtab"):
        return strings
    if is_relocations(section):
        return relocations
    if is_records(section):
        return records
    if name == ".nv.callgraph":
        return calls
    if name == ".nv.prototype":
        return prototypes
    if is_notes(section):
        return _note_fields
    return None


def is_records(section: Section) -> bool:
    """Return whether a section has records: .nv.compat, .nv.info, .nv.info.F, or a mercury form."""
    return section.name == COMPAT or section.name.startswith(INFO_PREFIXES)


def is_notes(section: Section) -> bool:
    return section.name.startswith(".note.")


def records(image: Image, section: Section) -> list[Record]:
    """Return the rows of .nv.compat, .nv.info or .nv.info.F, plain or mercury."""
    return (compat_records if section.name == COMPAT else info_records)(image, section)


def symbols(image: Image, section: Section) -> list[Symbol]:
    """Return the rows of a symbol table."""
    names = image.mercury_symbols if section.mercury else image.symbols
    rows = []
    entries = image.entries(section, SYM.format)
    for number, (_, info, other, shndx, value, size) in enumerate(entries):
        rows.append(
            Symbol(
                names[number] if number < len(names) else f"symbol {number}?",
                elf.SYMBOL_TYPES.get(info & 15, f"type {info & 15}"),
                elf.BINDINGS.get(info >> 4, f"binding {info >> 4}"),
                elf.VISIBILITIES[other & 3],
                tuple(elf.names_of_other(other, info & 15)),
                image.section_name(image.section_of_symbol(section, number, shndx)),
                value,
                size,
            )
        )
    return rows


def strings(image: Image, section: Section) -> list[Text]:
    """Return the rows of a string table."""
    return [Text(printable(text)) for text in image.content(section).split(b"\0")]


def relocations(image: Image, section: Section) -> list[Relocation]:
    """Return the rows of a relocation section."""
    rows = []
    record = REL_INFO if is_rel(section) else RELA_INFO
    for offset, info, *addend in image.entries(section, record.format):
        number = info & 0xFFFFFFFF
        symbol = image.symbol_name(info >> 32, section)
        name = relocation_name(number)
        rows.append(Relocation(offset, number, name, symbol, addend[0] if addend else None))
    return rows


def calls(image: Image, section: Section) -> list[Call]:
    """Return the rows of the call graph, with those that mark the start of a block.

    Such a row has first field 0 and a negative second one, the number of the block.
    """
    rows, block = [], 0
    for first, second in image.entries(section, "<Ii"):
        if first == 0 and second < 0:
            block = second
            rows.append(Call(block, "", ""))
            continue
        name = image.symbol_name(first, section)
        if block in PROTOTYPE_BLOCKS:
            rows.append(Call(block, name, image.string(second)))
        else:
            rows.append(Call(block, name, image.symbol_name(second & 0xFFFFFFFF, section)))
    return rows


def prototypes(image: Image, section: Section) -> list[Prototype]:
    """Return the rows of .nv.prototype."""
    return [
        Prototype(image.symbol_name(function, section), image.string(string))
        for function, string in image.entries(section, "<II")
    ]


def notes(image: Image, section: Section) -> list[Note]:
    """Return the notes of a section; MalformedCubin if its bytes are not notes."""
    data, position, rows = image.content(section), 0, []
    while position < len(data):
        if len(data) - position < NOTE_HEADER.size:
            raise MalformedCubin(
                f"{section.name}+{position:#x}: {len(data) - position} bytes are not a note"
            )
        name_size, size, kind = NOTE_HEADER.unpack_from(data, position)
        name_offset = position + NOTE_HEADER.size
        start = name_offset + elf.round_up(name_size, 4)
        if start > len(data) or size > len(data) - start:
            raise MalformedCubin(f"{section.name}+{position:#x}: the note runs past the section")
        vendor = printable(data[name_offset : name_offset + name_size].rstrip(b"\0"))
        rows.append(Note(vendor, kind, _decode_note(kind, data[start : start + size])))
        position = start + elf.round_up(size, 4)
    return rows


def _note_fields(image: Image, section: Section) -> list[NoteField]:
    """Return the fields of all notes of a section."""
    return [field for note in notes(image, section) for field in note.fields]


def _decode_note(kind: int, data: bytes) -> tuple[NoteField, ...]:
    """Return the fields of a note's contents; one field with all bytes for other kinds or sizes."""
    if kind == elf.NT_TKINFO and len(data) >= TOOL_NOTE.size:
        version, *offsets = TOOL_NOTE.unpack_from(data)
        names = ("version", "object file", "tool", "tool version", "tool build", "options")
        strings_data = data[TOOL_NOTE.size :]
        texts = [printable(strings_data[start:].split(b"\0", 1)[0]) for start in offsets]
        return tuple(map(NoteField, names, (str(version), *texts)))
    if kind == elf.NT_CUINFO and len(data) == 8:
        version, sm, toolkit, _ = struct.unpack("<4H", data)
        values = (str(version), str(sm), toolkit_name(toolkit))
        return tuple(map(NoteField, ("version", "sm", "toolkit"), values))
    return (NoteField("bytes", data.hex(" ", 4)),)


def capsules(image: Image) -> list[Capsule]:
    """Return the mercury capsules; each begins with the 16-bit number of its code section."""
    rows = []
    for section in image.sections:
        if section.name.startswith(CAPSULE):
            data = image.content(section)
            code = image.section_name(int.from_bytes(data[:2], "little"))
            rows.append(Capsule(section.name[len(CAPSULE) :], section.size, code))
    return rows
