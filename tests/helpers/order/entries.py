"""Relocations in the order reference: the effect of an entry, and the sections that it creates."""

from __future__ import annotations

import re

from helpers.order.lists import Lists, Section, Symbol
from helpers.order.reader import (
    COMMON,
    CONST0_SIZE,
    FUNC,
    SECTION,
    UND,
    WEAK,
    Entry,
    Input,
    Mention,
    Part,
)

UNIFIED = re.compile(r"__U[FD]T(_OFFSET|_CANONICAL|_END)?$")
LINES = (".debug_frame", ".debug_line", ".nv_debug_line_sass")

MARKS = (68, 69, 72, 73, 0x1000E)  # types for the null symbol, or for fields to be cleared
# Types of entries for constants that the driver applies, so that the output keeps them.
FOR_THE_DRIVER = {0x10001, 3, 4, 6, 7, 8, 9, 52, 53, 58, 67, 75, 101, 114, *range(84, 100)}


class Entries:
    """Adds relocation entries to the relocation section of their form, REL or RELA."""

    def __init__(self, lists: Lists, family: str, relocatable: bool) -> None:
        self.lists = lists
        self.family = family
        self.relocatable = relocatable

    def space(self, mention: Mention) -> str:
        """Return a symbol's memory: function, constant, shared, global, unified or reserved."""
        if mention.type == FUNC:
            return "function"
        if mention.part is not None:
            kind = mention.part.kind
            if kind in ("bank", "parameters", "pool", "late"):
                return "constant"
            return "shared" if kind in ("shared", "common shared") else "global"
        if mention.name.startswith(".nv.reservedSmem."):
            return "reserved"
        if mention.shndx == UND and UNIFIED.match(mention.name):
            return "unified"
        return {0x40: "shared", 0x80: "constant"}.get(mention.other & 0xE0, "global")

    def relocations(self, file: Input, part: Part) -> None:
        """Add the entries of a relocation section of an input."""
        target = file.parts[part.info]
        owner = target.owner.symbol if target.owner is not None else None
        if target.kind == "text":
            if target.owner is None or target.owner.lost:
                return
            home = target.owner.output_symbol.text
        else:
            home = target.home
        if home is None:
            return
        lost = _lost_bytes(file, target)
        first = True
        for entry in file.entries(part):
            mention = file.mentions[entry.symbol]
            fate = self._fate(target, mention, entry, owner)
            if fate == "nothing" or any(a <= entry.offset < b for a, b in lost):
                continue
            addend = entry.addend
            if mention.type == SECTION and mention.part is not None and mention.part.appended:
                addend += mention.part.base
            self._enter(home, part, mention, fate, addend, first=first)
            first = False

    def _enter(
        self, home: Section, part: Part, mention: Mention, fate: str, addend: int, *, first: bool
    ) -> None:
        """Add an entry; a RELA entry after the first, with addend 0, also creates a REL section."""
        explicit = part.type == 4
        if explicit not in home.forms:
            home.forms[explicit] = self.lists.section(part.name, "relocations", None, home)
        home.forms[explicit].entries.append((mention, fate))
        if explicit and addend == 0 and not first and False not in home.forms:
            name = f".rel{part.name[5:]}"
            home.forms[False] = self.lists.section(name, "relocations", None, home)

    def _fate(self, target: Part, mention: Mention, entry: Entry, owner: Symbol | None) -> str:
        """Return what becomes of an entry, its fate.

        `kept` and `array` (for the kernel's own extern array) are written. `resolved` and `shared`
        (for shared memory) are counted, but not written. `nothing` is neither.
        """
        if entry.type in MARKS:
            return "nothing" if mention.lost and target.name in LINES else "resolved"
        if mention.is_label and mention.index:
            return "resolved"
        if mention.symbol is None:
            if mention.part is None:
                return "nothing"
            if entry.type == 0x10008:  # -r: from .debug_info to .debug_line too
                return "kept"
            return "resolved" if mention.part.kind in ("debug", "bank") else "kept"
        if mention.lost and target.kind == "bank" and mention.bind == WEAK:
            return "nothing"
        return self._fate_in(self.space(mention.symbol.current), target, mention, entry, owner)

    def _fate_in(
        self, space: str, target: Part, mention: Mention, entry: Entry, owner: Symbol | None
    ) -> str:
        """Return the fate of an entry that refers to a symbol in a kind of memory."""
        symbol = mention.output_symbol
        if space == "function":
            return "nothing" if mention.lost and target.name in LINES else "kept"
        if space == "constant":
            waits = self.relocatable and symbol.copy is not None and symbol.copy.bind == WEAK
            return "kept" if waits or entry.type in FOR_THE_DRIVER else "resolved"
        if space == "shared":
            current = symbol.current
            if self.relocatable and current.size == 0 and owner is not None and owner.is_kernel:
                return "array"  # kept, for the kernel's own array
            return (
                "kept" if self.relocatable and current.bind == WEAK and current.size else "shared"
            )
        if space == "unified":
            stays = self.relocatable and self.family == "B" and entry.type not in (102, 103, 114)
            return "kept" if stays else "resolved"
        return "resolved" if mention.name == CONST0_SIZE else "kept"


def _lost_bytes(file: Input, target: Part) -> list[tuple[int, int]]:
    """Return the ranges of initialized data of weak variables that lost against weak ones."""
    if target.kind != "init":
        return []
    return [
        (m.value, m.value + m.size)
        for m in file.mentions
        if m.part is target and m.lost and m.symbol is not None and _current_is_weak(m)
    ]


def _current_is_weak(mention: Mention) -> bool:
    """Return whether the current definition of a symbol is weak."""
    copy = mention.output_symbol.copy
    return copy is not None and copy.bind == WEAK and copy.shndx != COMMON
