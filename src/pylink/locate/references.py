"""Where the inputs refer to symbols, by their relocations."""

from __future__ import annotations

from struct import unpack_from

from pylink.facts import sectionkinds
from pylink.facts.elf import SHT_REL, SHT_RELA
from pylink.facts.records import REL, RELA
from pylink.tables import FILE, SECTION, file_sections, section_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from pylink.phases.read import Objects

# A section and an offset in it.
Reference = tuple[int, int]

_ENTRIES = {SHT_REL: REL, SHT_RELA: RELA}

# Code and data. What debug data, call graphs and mercury twins refer to, these do, too.
_REFERRING = (
    sectionkinds.TEXT,
    sectionkinds.GLOBAL_INIT,
    sectionkinds.CONSTANT,
    sectionkinds.CONSTANT_FUNC,
    sectionkinds.CONSTANT0,
    sectionkinds.OTHER,
)


def find_references(
    objects: Objects, symbol_entity: bytes, wanted: Collection[int]
) -> dict[int, list[Reference]]:
    """All places that refer to each of the wanted entities, by file, section and offset.

    O(relocations of the files that mention one of them).
    """
    found: dict[int, list[Reference]] = {entity: [] for entity in wanted}
    for number in range(len(objects.names)):
        file = FILE.unpack_from(objects.files, number * FILE.size)
        entities = unpack_from(f"<{file[5]}i", symbol_entity, 4 * file[4])
        local = {i: entity for i, entity in enumerate(entities) if entity in found}
        if not local:
            continue
        for section, offset, symbol in relocations(objects, file_sections(objects.files, number)):
            if symbol in local:
                found[local[symbol]].append((section, offset))
    for references in found.values():
        references.sort()
    return found


def relocations(objects: Objects, sections: Iterable[int]) -> Iterator[tuple[int, int, int]]:
    """Patched section, offset in it, and symbol index, of the relocations in sections of a file."""
    for row in sections:
        fields = SECTION.unpack_from(objects.sections, row * SECTION.size)
        start, size, type, target, kind = fields[1], fields[2], fields[5], fields[11], fields[12]
        if kind != sectionkinds.RELOC or target < 0 or type not in _ENTRIES:
            continue
        patched = SECTION.unpack_from(objects.sections, target * SECTION.size)[12]
        if patched in _REFERRING:
            entry = _ENTRIES[type]
            whole = size - size % entry.size
            for offset, _, symbol, *_ in entry.iter_unpack(objects.arena[start : start + whole]):
                yield target, offset, symbol


def find_uses(objects: Objects, symbol_entity: bytes, section: int) -> list[tuple[int, int]]:
    """Offset and entity of all that one section refers to by relocations, in order of offsets."""
    number = section_file(objects.sections, section)
    first = FILE.unpack_from(objects.files, number * FILE.size)[4]
    tables = [
        row
        for row in file_sections(objects.files, number)
        if SECTION.unpack_from(objects.sections, row * SECTION.size)[11] == section
    ]
    return sorted(
        (offset, unpack_from("<i", symbol_entity, 4 * (first + symbol))[0])
        for _, offset, symbol in relocations(objects, tables)
    )
