"""A cubin, part by part, as values for `--json`; each function returns the value of one part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict

from pylink.facts.elf import FILE_TYPES, SECTION_TYPES, SEGMENT_TYPES, flag_letters
from pylink.inspect import contents
from pylink.inspect.image import Image, Section, is_relocations
from pylink.inspect.rows import Row


def headers(image: Image) -> object:
    """Return the fields of the ELF header and of the program headers."""
    header = image.header
    return {
        "type": FILE_TYPES.get(header.type, header.type),
        "sm": image.sm,
        "abi_version": image.abi_version,
        **{
            f"e_{name}": value
            for name, value in header._asdict().items()
            if name not in ("ident", "type")
        },
        "segments": [
            {**segment._asdict(), "type": SEGMENT_TYPES.get(segment.type, segment.type)}
            for segment in image.segments
        ],
    }


def sections(image: Image) -> object:
    """Return the section headers; that of a mercury capsule also names its code section."""
    code = {contents.CAPSULE + row.function: row.code for row in contents.capsules(image)}
    return [
        {
            "index": section.index,
            "name": section.name,
            "type": SECTION_TYPES.get(section.type, section.type),
            "flags": flag_letters(section.flags),
            "sh_type": section.type,
            "sh_flags": section.flags,
            "sh_addr": section.addr,
            "sh_offset": section.offset,
            "sh_size": section.size,
            "sh_link": section.link,
            "sh_info": section.info,
            "sh_addralign": section.align,
            "sh_entsize": section.entsize,
            **({"capsule_of": code[section.name]} if section.name in code else {}),
        }
        for section in image.sections
    ]


def symbols(image: Image) -> object:
    """Return the rows of the symbol tables."""
    return _tables(image, lambda section: section.name in contents.SYMBOL_TABLES)


def relocations(image: Image) -> object:
    """Return the rows of the relocation sections."""
    return _tables(image, is_relocations)


def info(image: Image) -> object:
    """Return the records of .nv.info and .nv.compat sections."""
    return _tables(image, contents.is_records)


def notes(image: Image) -> object:
    """Return the notes of all note sections, decoded."""
    return [
        {
            "section": section.name,
            "vendor": note.vendor,
            "type": note.type,
            **{field.name: field.value for field in note.fields},
        }
        for section in filter(contents.is_notes, image.sections)
        for note in contents.notes(image, section)
    ]


def callgraph(image: Image) -> object:
    """Return the pairs of .nv.callgraph by number of their block, and the prototypes."""
    calls, prototypes = image.section(".nv.callgraph"), image.section(".nv.prototype")
    blocks: dict[str, list[list[str]]] = {}
    for row in contents.calls(image, calls) if calls else ():
        block = blocks.setdefault(str(row.block), [])
        if row.first:
            block.append([row.first, row.second])
    rows = contents.prototypes(image, prototypes) if prototypes else ()
    return {"blocks": blocks, "prototypes": [asdict(row) for row in rows]}


def _tables(image: Image, selects: Callable[[Section], bool]) -> list[dict[str, object]]:
    """Return the rows of the sections that `selects` accepts; several may share a name."""
    return [
        {"section": section.name, "index": section.index, "rows": _rows(image, section)}
        for section in filter(selects, image.sections)
    ]


def _rows(image: Image, section: Section) -> list[dict[str, object]]:
    read = contents.find_reader(section)
    rows: Sequence[Row] = read(image, section) if read else ()
    return [asdict(row) for row in rows]
