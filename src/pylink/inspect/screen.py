"""A cubin, part by part, as text; each function returns the text of one part."""

from __future__ import annotations

from itertools import groupby

from pylink.facts.elf import FILE_TYPES, SECTION_TYPES, SEGMENT_TYPES, flag_letters
from pylink.facts.headers import SegmentHeader
from pylink.inspect import contents
from pylink.inspect.columns import add_title, format_pairs, format_table
from pylink.inspect.image import Image, is_relocations
from pylink.inspect.rows import Symbol

SEGMENT_FLAGS = ((4, "R"), (2, "W"), (1, "X"))


def headers(image: Image) -> str:
    """Return the ELF header and a table of the program headers as text."""
    header = image.header
    segments = f"{header.phnum} at {header.phoff:#x}" if image.segments else "none"
    rows = [
        ("type", FILE_TYPES.get(header.type, str(header.type))),
        ("target", f"sm_{image.sm}, ABI version {image.abi_version}"),
        ("flags", f"{header.flags:#x}"),
        ("section headers", f"{len(image.sections)} at {header.shoff:#x}"),
        ("segments", segments),
        ("size", f"{len(image.data):#x}"),
    ]
    heads = ("type", "flags", "offset", "in file", "in memory", "sections")
    lines = [_segment_row(image, segment) for segment in image.segments]
    text = add_title("ELF header", format_pairs(rows))
    return text + add_title("\nSegments", format_table(heads, lines, "llrrrl"))


def _segment_row(image: Image, segment: SegmentHeader) -> tuple[str, ...]:
    """Return the cells of a program header; the last one names its first and last section.

    Mercury sections, and sections without bytes in the file, do not count.
    """
    end = segment.offset + segment.filesz
    inside = [
        section.name
        for section in image.sections[1:]
        if section.file_size
        and not section.mercury
        and segment.offset <= section.offset
        and section.offset + section.size <= end
    ]
    return (
        SEGMENT_TYPES.get(segment.type, f"{segment.type:#x}"),
        "".join(letter for bit, letter in SEGMENT_FLAGS if segment.flags & bit),
        f"{segment.offset:#x}",
        f"{segment.filesz:#x}",
        f"{segment.memsz:#x}",
        "" if not inside else inside[0] + (f" to {inside[-1]}" if len(inside) > 1 else ""),
    )


def sections(image: Image) -> str:
    """Return a table of the sections, and one of the mercury capsules, as text."""
    rows = [
        (
            str(section.index),
            SECTION_TYPES.get(section.type, f"{section.type:#x}"),
            flag_letters(section.flags),
            f"{section.offset:#x}",
            f"{section.size:#x}",
            f"{section.align:#x}",
            str(section.link),
            # Before sm_90, sh_info of .text.* has a register count in its upper 8 bits.
            f"{section.info:#x}" if section.info > 0xFFFF else str(section.info),
            section.name,
        )
        for section in image.sections[1:]
    ]
    heads = ("nr", "type", "flags", "offset", "size", "align", "link", "info", "name")
    title = "Sections (W write, A alloc, X code, I info is a section, M mercury)"
    text = add_title(title, format_table(heads, rows, "rllrrrrrl"))
    capsules = [(f"{row.size:#x}", row.code) for row in contents.capsules(image)]
    return text + add_title("\nMercury capsules", format_table(("size", "of"), capsules, "rl"))


def symbols(image: Image) -> str:
    """Return a table of symbols for each symbol table, as text."""
    heads = ("nr", "value", "size", "binding", "type", "section", "name and what st_other says")
    texts = []
    for section in image.sections:
        if section.name in contents.SYMBOL_TABLES:
            entries = enumerate(contents.symbols(image, section))
            # The null symbol is listed only if a linker left a value in it.
            rows = [_symbol_row(i, row) for i, row in entries if i or row.value]
            texts.append(add_title(f"Symbols {section.name}", format_table(heads, rows, "rrrllll")))
    return "\n".join(texts)


def _symbol_row(index: int, row: Symbol) -> tuple[str, ...]:
    return (
        str(index),
        f"{row.value:#x}",
        f"{row.size:#x}",
        row.binding,
        row.type,
        row.place,
        f"{row.name}  {row.marks}".rstrip(),
    )


def relocations(image: Image) -> str:
    """Return a table of relocations for each relocation section, as text."""
    texts = []
    for section in filter(is_relocations, image.sections):
        rows = [
            (f"{row.offset:#x}", row.type_name, row.target)
            for row in contents.relocations(image, section)
        ]
        body = format_table(("offset", "type", "symbol and addend"), rows, "rll") or "  none\n"
        texts.append(add_title(f"Relocations {section.name}", body))
    return "\n".join(texts)


def info(image: Image) -> str:
    """Return the records of .nv.info and .nv.compat sections as text."""
    texts = []
    for section in filter(contents.is_records, image.sections):
        rows = [(row.attribute, row.text) for row in contents.records(image, section)]
        texts.append(add_title(f"Records {section.name}", format_pairs(rows) or "  none\n"))
    return "\n".join(texts)


def notes(image: Image) -> str:
    """Return the fields of all notes as text."""
    texts = []
    for section in filter(contents.is_notes, image.sections):
        for note in contents.notes(image, section):
            title = f"Note {section.name}: {note.vendor}, type {note.type}"
            texts.append(
                add_title(title, format_pairs([(field.name, field.value) for field in note.fields]))
            )
    return "\n".join(texts)


def callgraph(image: Image) -> str:
    """Return the call graph, block by block, and the prototypes as text."""
    texts = []
    section = image.section(".nv.callgraph")
    if section is not None:
        rows = contents.calls(image, section)
        body = ""
        for block, group in groupby(rows, key=lambda row: row.block):
            lines = "".join(f"    {row}\n" for row in group if row.first) or "    none\n"
            body += f"  block {block}, {contents.BLOCKS.get(block, 'unknown')}\n{lines}"
        texts.append(add_title("Call graph .nv.callgraph", body))
    section = image.section(".nv.prototype")
    if section is not None:
        prototype_rows = [
            (row.prototype, row.function) for row in contents.prototypes(image, section)
        ]
        body = format_table(("prototype", "function"), prototype_rows)
        texts.append(add_title("Prototypes .nv.prototype", body))
    return "\n".join(texts)
