"""Names of section kinds and relocation types in a profile."""

from __future__ import annotations

from pylink.facts import sectiontable
from pylink.facts.relocations import relocation_name

NO_TYPE = 0xFFFFFFFF


def family_name(kind: int) -> str:
    """The name of this kind of section, such as `.text.*`."""
    kinds = sectiontable.kinds()
    return kinds[kind].title if kind < len(kinds) else f"kind {kind}"


def type_name(number: int) -> str:
    """The name of a relocation type; the last counter is for all types without a name."""
    return "others" if number == NO_TYPE else relocation_name(number)
