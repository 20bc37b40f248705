"""Rows of the tables that an analysis has."""

from __future__ import annotations

from typing import NamedTuple

from pylink.tabular.columns import Size

# What the families of sections are called in a sentence; the others by their names.
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
    """A kind of difference, and how many cubins it keeps from folding."""

    reason: str
    cubins: int


def in_words(blocker: str) -> str:
    """A kind of difference as a sentence: `other bytes: debug_frame` by what that is."""
    kind, _, family = blocker.partition(": ")
    return f"{kind} in {FAMILIES.get(family, f'.{family}')}" if family else kind
