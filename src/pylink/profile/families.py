"""Names of section kinds and relocation types in a profile."""

from __future__ import annotations

from pylink.facts import sectiontable
from pylink.facts.relocations import relocation_name

# The number under which relocations of all types without a name are counted.
NO_TYPE = 0xFFFFFFFF


def family_name(kind: int) -> str:
    """Return the name of a kind of section by its number, such as `.text.*`."""
    kinds = sectiontable.kinds()
    return kinds[kind].title if kind < len(kinds) else f"kind {kind}"


def type_name(number: int) -> str:
    """Return the name of a relocation type, or "others" for NO_TYPE."""
    return "others" if number == NO_TYPE else relocation_name(number)
