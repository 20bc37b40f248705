"""Rows of the tables of an analysis."""

from __future__ import annotations

from typing import NamedTuple

from pylink.tabular.columns import Size

# Words for section families in sentences; other families have the name of the section.
FAMILIES = {"container": "code and its containers", "rela": "relocations"}


class FamilySums(NamedTuple):
    """Number and bytes of the Mercury sections of one family.

    `sections` and `size` count all. Fields with `folded` count the sections of cubins that fold.
    Fields with `single` count the sections that would fold if each section folded on its own: the
    most that can be saved.
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
