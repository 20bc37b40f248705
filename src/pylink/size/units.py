"""Names of entries: the target, the unit (source file), and the kind of PTX by its container."""

from __future__ import annotations

import re

from pylink.facts.fatbinentries import RELOCATABLE_SECTION, suffix_of
from pylink.facts.picknumbers import EntryKind
from pylink.size.model import PTX, RELOCATABLE, RELOCATABLE_PTX, Leaf

# The part of a local symbol's name that tells the source file: a hash, the length of the file's
# name, and this name with _ for all characters that a C name cannot have.
_UNIT_MARK = rb"_+(?:INTERNAL_+|GLOBAL__N__|nv_static_\d+__)[0-9a-f]{8}_(\d+)_(\w+)"


def target_of(kind: int, sm: int, flags: int) -> str:
    """Return the target of an entry by its fields, such as `sm_90a` or `compute_100f`."""
    return f"{'sm' if kind == EntryKind.ELF else 'compute'}_{sm}{suffix_of(flags)}"


def unit_of(mark: bytes) -> str:
    """Return the source file that `mark`, the name of a local symbol, tells; empty if none."""
    match = re.match(_UNIT_MARK, mark) if mark else None
    if match is None:
        return ""
    name = match[2][: int(match[1][:4])].decode("ascii", "replace")
    return re.sub(r"_(cu|cpp|cc|c|cxx|ptx|ii)$", r".\1", name)


def name_units(leaves: list[Leaf], hints: dict[int, bytes]) -> None:
    """Set `unit`, the source file, of a container's entries that lack it, if all hints agree.

    `hints` are those of `entries.Counter`: by id of a leaf, the name of a local symbol in it.
    """
    units = {unit for leaf in leaves if (unit := unit_of(hints.get(id(leaf), b"")))}
    unit_name = units.pop() if len(units) == 1 else ""
    for leaf in leaves:
        if unit_name and leaf.unit.startswith("container "):
            leaf.unit = unit_name


def mark_relocatable(leaves: list[Leaf], section: str) -> None:
    """Mark the PTX of a container as relocatable, if a cubin or the section shows that it is.

    `leaves` are the entries of the container.
    """
    if section == RELOCATABLE_SECTION or any(leaf.kind == RELOCATABLE for leaf in leaves):
        for leaf in leaves:
            if leaf.kind == PTX:
                leaf.kind = RELOCATABLE_PTX
