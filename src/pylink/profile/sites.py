"""Relocations at the instructions that they change, for the source page of Nsight Compute.

That page shows one function. It is the one to which the link applied most relocations.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pylink._native import counts
from pylink.facts import sectionkinds
from pylink.facts.relocations import relocation_name
from pylink.tables import entity_name

if TYPE_CHECKING:
    from pylink.profile.results import Results
    from pylink.report.model import Action, Report

# Reports contain a copy of the output for this page; of a larger one they do not.
LARGEST_IMAGE = 8 << 20

# Bytes of an instruction from sm_70 on.
INSTRUCTION = 16

# The first relocation number of mercury code, which has no instructions.
MERCURY = 0x10000


def add_source_counters(report: Report, action: Action, results: Results) -> None:
    """Count the relocations of one function at its instructions, where that can be shown."""
    if results.final is None or len(results.final.image) > LARGEST_IMAGE:
        return
    out = busiest_function(results)
    if out is None:
        return
    from pylink.report.source.loaded import load

    merged = results.merged
    entity = results.placed.outs[out].entity
    name = entity_name(merged, entity)
    loaded = load(results.final.image)
    start = loaded.addresses.get(name)
    if start is None:
        return
    applied: dict[int, int] = {}
    patched: dict[int, int] = {}
    # In the order of addresses, in which `ncu` looks for them.
    for offset, kind in sorted(counts.fixups_of(merged.fixups, out)):
        if kind >= MERCURY:
            continue
        at = start + offset // INSTRUCTION * INSTRUCTION
        applied[at] = applied.get(at, 0) + 1
        patched[at] = patched.get(at, 0) + field_bytes(kind)
    action.source = report.add_source(loaded.source)
    action.mangled_name = name
    action.set("launch__function_pcs", start)
    action.set("reloc__inst_patched", sum(applied.values()), applied)
    action.set("reloc__bytes_patched", sum(patched.values()), patched)


def busiest_function(results: Results) -> int | None:
    """The OutRow of the code to which most relocations were applied; None when there is none."""
    outs = results.placed.outs
    applied = counts.count_by_section(results.placed)
    best = None
    most = 0
    for number, (count, row) in enumerate(zip(applied, outs, strict=True)):
        if count > most and row.kind == sectionkinds.TEXT and row.entity >= 0:
            best, most = number, count
    return best


def field_bytes(kind: int) -> int:
    """Bytes that a relocation of this type touches; the name begins with the width in bits."""
    width = re.search(r"[0-9]+", relocation_name(kind).partition("R_CUDA_")[2])
    return -(-int(width[0]) // 8) if width else 8
