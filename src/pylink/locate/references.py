"""Finds references to symbols in the inputs, by their relocations."""

from __future__ import annotations

from pylink.facts import sectionkinds
from pylink.facts.elf import SHT_REL, SHT_RELA
from pylink.facts.records import REL, RELA
from pylink.tables import file_sections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from pylink._native.tables import Numbers
    from pylink.phases.results import Objects

# A section (row number) and an offset in it.
Reference = tuple[int, int]

# Formats of relocation entries, by section type.
_ENTRIES = {SHT_REL: REL, SHT_RELA: RELA}

# Kinds of sections whose relocations are references. Relocations of debug data, and of the mercury
# (portable) forms that sections also have from sm_100 on, only repeat them.
_REFERRING_KINDS = (
    sectionkinds.TEXT,
    sectionkinds.GLOBAL_INIT,
    sectionkinds.CONSTANT,
    sectionkinds.CONSTANT_FUNC,
    sectionkinds.CONSTANT0,
    sectionkinds.OTHER,
)


def find_references(
    objects: Objects, symbol_entity: Numbers, chosen: Collection[int]
) -> dict[int, list[Reference]]:
    """Return, by entity, all references to the `chosen` ones, in order of file, section and offset.

    An entity is a symbol of the link; `symbol_entity` has that of each symbol row. Takes time
    linear in the numbers of all symbols, and of relocations in files that mention a chosen entity.
    """
    by_entity: dict[int, list[Reference]] = {entity: [] for entity in chosen}
    for number in range(len(objects.names)):
        file = objects.files[number]
        entities = (symbol_entity[file.first_symbol + i] for i in range(file.symbol_count))
        entity_of = {i: entity for i, entity in enumerate(entities) if entity in by_entity}
        if not entity_of:
            continue
        for section, offset, symbol in relocations(objects, file_sections(objects, number)):
            if symbol in entity_of:
                by_entity[entity_of[symbol]].append((section, offset))
    for references in by_entity.values():
        references.sort()
    return by_entity


def relocations(objects: Objects, sections: Iterable[int]) -> Iterator[tuple[int, int, int]]:
    """Yield patched section, offset and symbol index of relocations that are references.

    `sections` are sections of one file; those that are not relocation sections are skipped.
    """
    for row in sections:
        table = objects.sections[row]
        start, size, target = table.offset, table.size, table.target
        if table.kind != sectionkinds.RELOC or target < 0 or table.type not in _ENTRIES:
            continue
        if objects.sections[target].kind in _REFERRING_KINDS:
            entry = _ENTRIES[table.type]
            whole_size = size - size % entry.size
            for offset, _, symbol, *_ in entry.iter_unpack(
                objects.arena[start : start + whole_size]
            ):
                yield target, offset, symbol


def find_uses(objects: Objects, symbol_entity: Numbers, section: int) -> list[tuple[int, int]]:
    """Return offset and entity of all references in one section, in order of offsets."""
    number = objects.sections[section].file
    first = objects.files[number].first_symbol
    tables = [
        row for row in file_sections(objects, number) if objects.sections[row].target == section
    ]
    return sorted(
        (offset, symbol_entity[first + symbol])
        for _, offset, symbol in relocations(objects, tables)
    )
