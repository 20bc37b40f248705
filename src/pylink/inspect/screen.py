"""A cubin, part by part, as text."""

from __future__ import annotations

from itertools import groupby

from pylink.facts.elf import FILE_TYPES, SECTION_TYPES, SEGMENT_TYPES, flag_letters
from pylink.inspect import contents
from pylink.inspect.columns import pairs, table, titled
from pylink.inspect.image import Image, Segment, is_relocations
from pylink.inspect.rows import Symbol

SEGMENT_FLAGS = ((4, "R"), (2, "W"), (1, "X"))


def headers(image: Image) -> str:
    header = image.header
    segments = f"{header['phnum']} at {header['phoff']:#x}" if image.segments else "none"
    rows = [
        ("type", FILE_TYPES.get(header["type"], str(header["type"]))),
        ("target", f"sm_{image.sm}, ABI version {image.abi_version}"),
        ("flags", f"{header['flags']:#x}"),
        ("section headers", f"{len(image.sections)} at {header['shoff']:#x}"),
        ("segments", segments),
        ("size", f"{len(image.data):#x}"),
    ]
    heads = ("type", "flags", "offset", "in file", "in memory", "sections")
    lines = [_segment(image, segment) for segment in image.segments]
    text = titled("ELF header", pairs(rows))
    return text + titled("\nSegments", table(heads, lines, "llrrrl"))


def _segment(image: Image, segment: Segment) -> tuple[str, ...]:
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
    rows = [
        (
            str(section.index),
            SECTION_TYPES.get(section.type, f"{section.type:#x}"),
            flag_letters(section.flags),
            f"{section.offset:#x}",
            f"{section.size:#x}",
            f"{section.align:#x}",
            str(section.link),
            # Before sm_90, sh_info of .text.* has a register count above the symbol.
            f"{section.info:#x}" if section.info > 0xFFFF else str(section.info),
            section.name,
        )
        for section in image.sections[1:]
    ]
    heads = ("nr", "type", "flags", "offset", "size", "align", "link", "info", "name")
    title = "Sections (W write, A alloc, X code, I info is a section, M mercury)"
    text = titled(title, table(heads, rows, "rllrrrrrl"))
    capsules = [(f"{row.size:#x}", row.code) for row in contents.capsules(image)]
    return text + titled("\nMercury capsules", table(("size", "of"), capsules, "rl"))


def symbols(image: Image) -> str:
    heads = ("nr", "value", "size", "binding", "type", "section", "name and what st_other says")
    texts = []
    for section in image.sections:
        if section.name in contents.SYMBOL_TABLES:
            entries = enumerate(contents.symbols(image, section))
            # The null symbol is listed only if a linker left a value in it.
            rows = [_symbol(i, row) for i, row in entries if i or row.value]
            texts.append(titled(f"Symbols {section.name}", table(heads, rows, "rrrllll")))
    return "\n".join(texts)


def _symbol(index: int, row: Symbol) -> tuple[str, ...]:
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
    texts = []
    for section in filter(is_relocations, image.sections):
        rows = [
            (f"{row.offset:#x}", row.type_name, row.target)
            for row in contents.relocations(image, section)
        ]
        body = table(("offset", "type", "symbol and addend"), rows, "rll") or "  none\n"
        texts.append(titled(f"Relocations {section.name}", body))
    return "\n".join(texts)


def info(image: Image) -> str:
    texts = []
    for section in filter(contents.is_records, image.sections):
        rows = [(row.attribute, row.text) for row in contents.records(image, section)]
        texts.append(titled(f"Records {section.name}", pairs(rows) or "  none\n"))
    return "\n".join(texts)


def notes(image: Image) -> str:
    texts = []
    for section in filter(contents.is_notes, image.sections):
        for note in contents.notes(image, section):
            title = f"Note {section.name}: {note.vendor}, type {note.type}"
            texts.append(titled(title, pairs([(field.name, field.value) for field in note.fields])))
    return "\n".join(texts)


def callgraph(image: Image) -> str:
    texts = []
    section = image.section(".nv.callgraph")
    if section is not None:
        rows = contents.calls(image, section)
        body = ""
        for block, group in groupby(rows, key=lambda row: row.block):
            lines = "".join(f"    {row}\n" for row in group if row.first) or "    none\n"
            body += f"  block {block}, {contents.BLOCKS.get(block, 'unknown')}\n{lines}"
        texts.append(titled("Call graph .nv.callgraph", body))
    section = image.section(".nv.prototype")
    if section is not None:
        pointed = [(row.prototype, row.function) for row in contents.prototypes(image, section)]
        body = table(("prototype", "function"), pointed)
        texts.append(titled("Prototypes .nv.prototype", body))
    return "\n".join(texts)
