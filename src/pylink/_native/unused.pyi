"""Constant variables that no code of the link reads, where the bank has no room for all."""

from pylink._native.tables import MergedTables, Sections

def drop_constants(merged: MergedTables, names: list[bytes], limit: int) -> Sections:
    """The input sections without constants that nothing uses, if these fit into ``limit`` bytes.

    The very same table where all fit, or where those that are used do not. A section that goes has
    no bytes and no relocations; ``entities`` says that its variables have no symbols. Variables
    whose name contains one of ``names`` are used.
    """
