"""What to call the kinds of sections and the types of relocations in a profile."""

from __future__ import annotations

from pylink.facts import sectiontable
from pylink.facts.relocations import relocation_name

NO_TYPE = 0xFFFFFFFF


def family_name(kind: int) -> str:
    """The name of a section of this kind, with `*` for what differs: `.text.*`."""
    kinds = sectiontable.kinds()
    return kinds[kind].title if kind < len(kinds) else f"kind {kind}"


def type_name(number: int) -> str:
    """The name of a relocation type; the last counter is for all that have none."""
    return "others" if number == NO_TYPE else relocation_name(number)
