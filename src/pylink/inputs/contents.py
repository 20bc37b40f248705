"""What is in the host objects and fat binaries of a link."""

from __future__ import annotations

from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.inputs.sources import Sources

# EntryRow and SourceRow of fatbinrows.pxd.
ENTRY = Struct("<6I5Q")
SOURCE = Struct("<15Q")


class Found:
    """What was found in the host objects and fat binaries among the sources, by their number.

    `rows` has a SourceRow each, `entries` the EntryRows of all. Of a shared library, containers and
    ids are those that are linked, once that is known.
    """

    __slots__ = ("_restricted", "entries", "rows", "sources")

    def __init__(self, sources: Sources, entries: bytes, rows: bytes) -> None:
        self.sources = sources
        self.entries = entries
        self.rows = rows
        self._restricted: dict[int, list[bytes]] = {}

    def restrict(self, number: int, ids: list[bytes]) -> None:
        """Say which modules of a shared library are linked."""
        self._restricted[number] = ids

    def containers(self, number: int) -> int:
        """How many containers a source has, 0 for one without device code."""
        if number in self._restricted:
            return len(self._restricted[number])
        start = SOURCE.size * number
        return int.from_bytes(self.rows[start : start + 8], "little")

    def ids(self, number: int) -> list[bytes] | None:
        """The ids of the modules, None without `__nv_module_id`."""
        if number in self._restricted:
            return self._restricted[number]
        _, offset, size, *_ = SOURCE.unpack_from(self.rows, SOURCE.size * number)
        return names_at(self.sources[number].arena, offset, size)

    def lists_hold(self, number: int, count: int) -> bool:
        """Whether each list of names can be that of `count` modules, which all end with a zero."""
        row = SOURCE.unpack_from(self.rows, SOURCE.size * number)
        arena = self.sources[number].arena
        return all(
            offset and arena.count(0, offset, offset + size) >= count
            for offset, size in zip(row[3:15:2], row[4:15:2], strict=True)
        )


def names_at(arena: bytes, offset: int, size: int) -> list[bytes] | None:
    """The names between zero bytes in a section; None when there is no section (offset 0)."""
    if not offset:
        return None
    return [name for name in arena[offset : offset + size].split(b"\0") if name]
