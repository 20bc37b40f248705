"""Counts relocations at the instructions that they change, for Nsight Compute's source page.

The source page shows one function: the one to which the link applied most relocations.
"""

from __future__ import annotations

from pylink._native import counts
from pylink.facts import sectionkinds
from pylink.facts.relocations import RELOCATIONS
from pylink.tables import entity_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.profile.results import PhaseResults
    from pylink.report.model import Action, Report

# Limit of the bytes of the output, of which the report contains a copy for the source page.
MAX_IMAGE_SIZE = 8 << 20

# Bytes of an instruction from sm_70 on.
INSTRUCTION_SIZE = 16

# The first relocation type of Mercury code, which has no instructions.
FIRST_MERCURY_TYPE = 0x10000


def add_source_counters(report: Report, action: Action, results: PhaseResults) -> None:
    """Add the relocations of the function with most at its instructions, if the image is small."""
    if results.final is None or len(results.final.image) > MAX_IMAGE_SIZE:
        return
    section = _section_of_busiest_function(results)
    if section is None:
        return
    from pylink.report.source.loaded import load_with_addresses

    merged = results.placed.merged
    entity = results.placed.outs[section].entity
    name = entity_name(merged, entity)
    loaded_code = load_with_addresses(results.final.image)
    function_address = loaded_code.addresses.get(name)
    if function_address is None:
        return
    applied_counts: dict[int, int] = {}
    patched_bytes: dict[int, int] = {}
    # `ncu` expects instances in the order of addresses.
    for offset, relocation_type in sorted(counts.list_fixups(merged.fixups, section)):
        if relocation_type >= FIRST_MERCURY_TYPE:
            continue
        address = function_address + offset // INSTRUCTION_SIZE * INSTRUCTION_SIZE
        applied_counts[address] = applied_counts.get(address, 0) + 1
        patched_bytes[address] = patched_bytes.get(address, 0) + field_bytes(relocation_type)
    action.source = report.add_source(loaded_code.source)
    action.mangled_name = name
    action.set("launch__function_pcs", function_address)
    action.set("reloc__inst_patched", sum(applied_counts.values()), applied_counts)
    action.set("reloc__bytes_patched", sum(patched_bytes.values()), patched_bytes)


def _section_of_busiest_function(results: PhaseResults) -> int | None:
    """Return the OutRow number of the code with the most applied relocations; None without any."""
    outs = results.placed.outs
    applied = counts.count_fixups(results.placed)
    busiest = None
    most_relocations = 0
    for number, (count, row) in enumerate(zip(applied, outs, strict=True)):
        if count > most_relocations and row.kind == sectionkinds.TEXT and row.entity >= 0:
            busiest, most_relocations = number, count
    return busiest


def field_bytes(relocation_type: int) -> int:
    """Return the number of bytes that hold the field of a relocation of type `relocation_type`."""
    return (RELOCATIONS[relocation_type].bits + 7) // 8
