"""What is in the host objects and fat binaries of a link."""

from __future__ import annotations

import os

from pylink.inputs.kinds import OF_HOST
from pylink.rowformats import SOURCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.inputs.sources import Sources


class DeviceContents:
    """What was found in the host objects and fat binaries among the sources, by their number.

    `rows` has a SourceRow each, `entries` the EntryRows of all. The containers and ids of a shared
    library are those that are linked, once that is known.
    """

    __slots__ = ("_listed", "_registered", "_restricted", "entries", "rows", "sources")

    def __init__(self, sources: Sources, entries: bytes, rows: bytes) -> None:
        self.sources = sources
        self.entries = entries
        self.rows = rows
        self._restricted: dict[int, list[bytes]] = {}
        self._listed: dict[int, list[tuple[str, bool]]] = {}
        self._registered: tuple[list[int], list[tuple[str, bool]]] | None = None

    def restrict(self, number: int, ids: list[bytes]) -> None:
        """Say which modules of a shared library are linked."""
        self._restricted[number] = ids
        self._listed.pop(number, None)
        self._registered = None

    def containers(self, number: int) -> int:
        """How many containers a source has, 0 for one without device code."""
        if number in self._restricted:
            return len(self._restricted[number])
        start = SOURCE.size * number
        return int.from_bytes(self.rows[start : start + 8], "little")

    def machines(self) -> memoryview:
        """The ELF machine of the host that each source is for, 0 for one without containers."""
        return memoryview(self.rows).cast("Q")[15::16]

    def ids(self, number: int) -> list[bytes] | None:
        """The ids of the modules, None without `__nv_module_id`."""
        if number in self._restricted:
            return self._restricted[number]
        _, offset, size, *_ = SOURCE.unpack_from(self.rows, SOURCE.size * number)
        return names_at(self.sources[number].arena, offset, size)

    def listed(self, number: int) -> list[tuple[str, bool]]:
        """What a host object registers: module ids with True, or the name of the file with False.

        Several links may ask for the same.
        """
        listed = self._listed.get(number)
        if listed is None:
            listed = self._listed[number] = self._list(number)
        return listed

    def all_listed(self, numbers: Sequence[int]) -> list[tuple[str, bool]]:
        """What the sources with these numbers list, each a host object or a plain file.

        The links of a step mostly ask for the same ones, of which there may be thousands.
        """
        known = self._registered
        if known is not None and known[0] == numbers:
            return known[1].copy()
        names, kinds = self.sources.names, self.sources.kinds
        listed: list[tuple[str, bool]] = []
        for number in numbers:
            if kinds[number] in OF_HOST:
                listed += self.listed(number)
            else:
                listed.append((names[number], False))
        self._registered = [*numbers], listed
        return listed.copy()

    def _list(self, number: int) -> list[tuple[str, bool]]:
        if not self.containers(number):
            return []
        ids = self.ids(number)
        if ids is None:
            return [(self.sources.names[number], False)]
        return [(os.fsdecode(identifier), True) for identifier in ids or [b""]]

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
