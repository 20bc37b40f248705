"""What to call the kinds of sections and the types of relocations in a profile."""

from __future__ import annotations

from pylink.elf.relocations import relocation_name
from pylink.sections import rules

# Kinds that the reader makes of others, so that no rule names them.
SPLIT = {
    rules.OTHER: "other",
    rules.NULL: "null",
    rules.CONSTANT: ".nv.constant*",
    rules.CONSTANT_FUNC: ".nv.constant*.*",
    rules.CONSTANT0: ".nv.constant0.*",
    rules.RELOC: ".rela.*",
    rules.DEBUG: ".debug_*",
    rules.MERC_DEBUG: ".nv.merc.debug_*",
}
NO_TYPE = 0xFFFFFFFF


def family_name(kind: int) -> str:
    """The name of a section of this kind, with `*` for what differs: `.text.*`."""
    if kind in SPLIT:
        return SPLIT[kind]
    for text, exact, other in rules.RULES:
        if other == kind:
            return text.decode() + ("" if exact else "*")
    return f"kind {kind}"


def type_name(number: int) -> str:
    """The name of a relocation type; the last counter is for all that have none."""
    return "others" if number == NO_TYPE else relocation_name(number)
