"""Cubins that are files of their own, natively; who reads nothing else loads little.

Most files of a tree that have device code may be cubins, or most may be archives and host objects:
this takes the first kind and what has no device code, and leaves the rest to `contents`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylink._native.cubinfiles import read_cubins

if TYPE_CHECKING:
    from pylink._native.sectionindex import Columns
    from pylink.fleet.walk import Files

# Larger files are opened twice, the first time for their beginning.
SNIFFED = 1 << 20

CUBIN, OTHER = "cubin", "other"

# What became of a file: its kind, and "" for one to be looked at closely.
FATES = (CUBIN, OTHER, "")


def read_directly(files: Files, first: int, hasher: int) -> tuple[bytes, Columns]:
    """A fate for each file, see FATES, and objects and sections of those that are cubins.

    Their numbers begin with `first`.
    """
    return read_cubins(*files, SNIFFED, first, hasher)
