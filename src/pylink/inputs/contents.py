"""The device code in the host objects and fat binaries of a link."""

from __future__ import annotations

import sys
from _thread import allocate_lock
from itertools import repeat

from pylink.inputs.kinds import OF_HOST
from pylink.rowformats import SOURCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.inputs.sources import Sources

SOURCE_WORDS = SOURCE.size // 8  # numbers of a SourceRow, all u64


class DeviceContents:
    """The device code in the host objects and fat binaries among the sources, by source number.

    `rows` has a SourceRow for each source, `entries` the EntryRows of all. A source has a container
    (fat binary) and an id for each of its modules, i.e. source files. For a shared library, these
    are only those of the modules that are linked, once `restrict` has been called.
    """

    __slots__ = ("_all_registered", "_lock", "_restricted", "entries", "rows", "sources")

    def __init__(self, sources: Sources, entries: bytes, rows: bytes) -> None:
        self.sources = sources
        self.entries = entries
        self.rows = rows
        self._restricted: dict[int, list[bytes]] = {}
        self._all_registered: tuple[list[int], list[tuple[str, bool]]] | None = None
        # Threads that link side by side ask for the same list at once: the first one makes it.
        self._lock = allocate_lock()

    def restrict(self, number: int, ids: list[bytes]) -> None:
        """Set the ids of the modules of a shared library that are linked."""
        self._restricted[number] = ids
        self._all_registered = None

    def container_count(self, number: int) -> int:
        """Return the number of containers in a source, 0 without device code."""
        if number in self._restricted:
            return len(self._restricted[number])
        start = SOURCE.size * number
        return int.from_bytes(self.rows[start : start + 8], "little")

    def machines(self) -> memoryview:
        """Return the ELF machine of each source's host code, 0 without containers."""
        # The last number of a SourceRow.
        return memoryview(self.rows).cast("Q")[15::SOURCE_WORDS]

    def ids(self, number: int) -> list[bytes] | None:
        """Return the ids of a source's modules; None if it has no section `__nv_module_id`."""
        if number in self._restricted:
            return self._restricted[number]
        _, offset, size, *_ = SOURCE.unpack_from(self.rows, SOURCE.size * number)
        return names_at(self.sources[number].arena, offset, size)

    def all_registered(self, numbers: Sequence[int]) -> list[tuple[str, bool]]:
        """Return the names under which these sources are registered: ids of modules, or file names.

        Each name comes with True if it is an id. Host objects without ids, and sources that are not
        host objects, have file names; host objects without device code are omitted. The last list
        is cached: the links of a step mostly ask for the same sources, maybe thousands.
        """
        with self._lock:
            cached = self._all_registered
            if cached is None or cached[0] != numbers:
                cached = self._all_registered = [*numbers], self._find_registered(numbers)
        return cached[1].copy()

    def _find_registered(self, numbers: Sequence[int]) -> list[tuple[str, bool]]:
        """Compute what `all_registered` returns, without the cache."""
        sources, restricted = self.sources, self._restricted
        names, kinds, arenas = sources.names, sources.kinds, sources.arenas
        # Columns are read at once: a look at the row of each source takes four times as long.
        columns = memoryview(self.rows).cast("Q")
        counts, offsets, sizes = (columns[place::SOURCE_WORDS].tolist() for place in range(3))
        arena_numbers = memoryview(bytes(sources.arena_numbers)).cast("i").tolist()
        texts: list[bytes] = []  # sections with ids, up to the first source that has none
        for number in [] if restricted else numbers:
            offset = offsets[number]
            if not (kinds[number] in OF_HOST and counts[number] and offset):
                break
            texts.append(arenas[arena_numbers[number]][offset : offset + sizes[number]])
        if texts and len(texts) == len(numbers):
            ids = _decode_single_names(texts)
            if ids is not None:
                return list(zip(ids, repeat(True), strict=False))
        encoding, errors = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
        listed: list[tuple[str, bool]] = []
        for number in numbers:
            if kinds[number] not in OF_HOST:
                listed.append((names[number], False))
            elif number in restricted:
                listed += [(name.decode(encoding, errors), True) for name in restricted[number]]
            elif counts[number] and offsets[number]:
                offset = offsets[number]
                text = arenas[arena_numbers[number]][offset : offset + sizes[number]]
                names_there = [name for name in text.split(b"\0") if name] or [b""]
                listed += [(name.decode(encoding, errors), True) for name in names_there]
            elif counts[number]:  # a host object without `__nv_module_id`
                listed.append((names[number], False))
        return listed

    def has_complete_lists(self, number: int, count: int) -> bool:
        """Return whether a source's lists of kernels and of variables are complete.

        A complete list has at least one zero byte for each of the `count` modules.
        """
        # Numbers 3 to 14 of a SourceRow are offset and size of six lists: kernels and variables.
        row = SOURCE.unpack_from(self.rows, SOURCE.size * number)
        arena = self.sources[number].arena
        return all(
            offset and arena.count(0, offset, offset + size) >= count
            for offset, size in zip(row[3:15:2], row[4:15:2], strict=True)
        )


def _decode_single_names(texts: Sequence[bytes]) -> list[str] | None:
    """Return the name in each text; None unless each text is one name and a zero byte after it.

    All are decoded at once: one by one, they would take four times as long.
    """
    encoding, errors = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
    joined = b"\0".join(texts).decode(encoding, errors)
    # Each text ends with a zero and `join` adds one, so two zeros stand between two texts. If there
    # are no other zeros, each text is one name.
    names = joined[:-1].split("\0\0")
    is_single = (
        all(texts)
        and all(names)
        and joined.endswith("\0")
        and len(names) == len(texts)
        and joined.count("\0") == 2 * len(texts) - 1
    )
    return names if is_single else None


def names_at(arena: bytes, offset: int, size: int) -> list[bytes] | None:
    """Return the names between zero bytes in a section; None without the section (offset 0)."""
    if not offset:
        return None
    return [name for name in arena[offset : offset + size].split(b"\0") if name]
