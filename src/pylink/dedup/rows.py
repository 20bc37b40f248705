"""Rows of the tables of an analysis."""

from __future__ import annotations

from typing import NamedTuple

from pylink.tabular.columns import Size

# Names in sentences of families of sections; others have the name of the section.
FAMILIES = {"container": "code and its containers", "rela": "relocations"}


class FamilySums(NamedTuple):
    """The Mercury sections of one family: all, those that fold with their cubins, and those that
    would fold one by one, which is the most that can be saved.
    """

    family: str
    sections: int
    size: Size
    folded_sections: int
    folded: Size
    single_sections: int
    single: Size


class BlockerRow(NamedTuple):
    """A kind of difference, and the number of cubins that it keeps from folding."""

    reason: str
    cubins: int


def describe_blocker(blocker: str) -> str:
    """Return a kind of difference in words.

    `other bytes: debug_info` becomes `other bytes in .debug_info`.
    """
    kind, _, family = blocker.partition(": ")
    return f"{kind} in {FAMILIES.get(family, f'.{family}')}" if family else kind
