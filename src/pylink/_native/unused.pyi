"""Drops constant variables that no code of the link reads, if the bank would overflow."""

from pylink._native.results import MergedTables
from pylink._native.tables import Sections

def drop_constants(merged: MergedTables, names: list[bytes], limit: int) -> Sections:
    """Return the input sections; unused constants lose their bytes if the bank only then fits.

    `limit` is the room in the file-scope constant bank in bytes. Returns the same object if all
    constants fit, or the used ones do not. A dropped section has no bytes and no
    relocations; its variables get the flag EF_INTERNAL in `entities`, so they have no symbols.
    Variables whose name contains one of `names`, in which a star matches any characters, count as
    used.
    """
