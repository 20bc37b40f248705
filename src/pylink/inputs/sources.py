"""The sources of a link (inputs and archive members), in columns: archives have thousands."""

from __future__ import annotations

from pylink.facts.inputkinds import SHARED
from pylink.tables import extent, extent_at

# Marks of a source, bits.
WHOLE_ARCHIVE = 1  # it is a member of an archive of which all is linked
OVERLOOKED = 2  # nvlink would not read it


class Library:
    """A shared library, as its dynamic symbols describe it.

    `open` are ids of modules whose registration function it lacks, `closed` those whose function it
    defines. `wrappers` are the ids whose wrapper (the symbol of the module's code) is exported, and
    `interposable` the closed ids whose registration function a program can replace. `contained` are
    the modules in the file; a library that only has a device link contains none. `sources_before`
    is the number of sources in front of it. `anchor` is a function that it exports, not weak, or
    None. `has_runtime` says that it has a CUDA runtime of its own. `modules` is the number of
    modules, open or closed. `source` is the file, None if only parts of it were read.
    """

    __slots__ = (
        "anchor", "closed", "contained", "file", "has_runtime", "interposable", "modules", "open",
        "source", "sources_before", "wrappers",
    )  # fmt: skip

    def __init__(self, file: str) -> None:
        self.file = file
        self.source: Source | None = None
        self.open: dict[bytes, None] = {}
        self.closed: dict[bytes, None] = {}
        self.wrappers: set[bytes] = set()
        self.interposable: set[bytes] = set()
        self.contained: set[bytes] = set()
        self.sources_before = 0
        self.anchor: bytes | None = None
        self.has_runtime = False
        self.modules = 0


class Source:
    """One source of a link (a row of `Sources`): `size` bytes of `arena` from `offset` on.

    `number` is its row, `name` is for diagnostics, `archive:member` for a member.
    """

    __slots__ = ("arena", "kind", "name", "number", "offset", "size")

    def __init__(
        self, number: int, name: str, kind: int, arena: bytes, offset: int, size: int
    ) -> None:
        self.number = number
        self.name = name
        self.kind = kind
        self.arena = arena
        self.offset = offset
        self.size = size

    @property
    def data(self) -> bytes:
        """The bytes of the source."""
        return self.arena[self.offset : self.offset + self.size]


class SourceBatch:
    """Sources whose bytes are in one `arena`, as columns: those of `Sources` but without groups."""

    __slots__ = ("arena", "demands", "extents", "kinds", "marks", "names")

    def __init__(self, arena: bytes, names: list[str], kinds: bytes, extents: bytes) -> None:
        self.arena = arena
        self.names = names
        self.kinds = kinds
        self.extents = extents
        self.demands = bytes(len(names))
        self.marks = bytes(len(names))

    def __getitem__(self, number: int) -> Source:
        offset, size = extent_at(self.extents, number)
        return Source(number, self.names[number], self.kinds[number], self.arena, offset, size)

    def as_library(self, number: int) -> SourceBatch:
        """Return a batch of the source `number` alone, with the kind of shared libraries."""
        row = self.extents[16 * number : 16 * number + 16]
        return SourceBatch(self.arena, [self.names[number]], bytes([SHARED]), row)

    def part(self, first: int, end: int) -> SourceBatch:
        """Return the sources `first` (included) to `end` (excluded)."""
        if end - first == len(self.names):
            return self
        names, extents = self.names[first:end], self.extents[16 * first : 16 * end]
        part = SourceBatch(self.arena, names, self.kinds[first:end], extents)
        part.demands = self.demands[first:end]
        part.marks = self.marks[first:end]
        return part

    def subset(self, numbers: list[int], names: list[str]) -> SourceBatch:
        """Return the sources with these numbers, with other names."""
        if numbers == list(range(len(self.names))):
            return SourceBatch(self.arena, names, self.kinds, self.extents)
        chosen_kinds = bytes(map(self.kinds.__getitem__, numbers))
        rows = memoryview(self.extents).cast("Q")
        extents = b"".join(extent(rows[2 * number], rows[2 * number + 1]) for number in numbers)
        return SourceBatch(self.arena, names, chosen_kinds, extents)

    def of_kinds(self, kinds: bytes) -> SourceBatch:
        """Return the sources of these kinds."""
        if not self.kinds.translate(None, kinds):
            return self
        numbers = [number for number, kind in enumerate(self.kinds) if kind in kinds]
        extents = b"".join(self.extents[16 * number : 16 * number + 16] for number in numbers)
        names = [self.names[number] for number in numbers]
        batch = SourceBatch(
            self.arena, names, bytes(self.kinds[number] for number in numbers), extents
        )
        batch.demands = bytes(self.demands[number] for number in numbers)
        batch.marks = bytes(self.marks[number] for number in numbers)
        return batch


class Sources:
    """Columns with a row for each input and archive member, in the order of the link.

    `names` are for diagnostics. `kinds` has a byte of `inputkinds` each, `extents` offset and size
    (u64) in one of the `arenas`, and `arena_numbers` its number (int32). `demands` has a Demand,
    i.e. when the source is linked, and `marks` WHOLE_ARCHIVE and OVERLOOKED. `groups` has the
    archive of a member (int32): 1 + the number of that input, 0 for none. `libraries` are
    descriptions of shared libraries, by source number. `size` has the bytes of all files.
    """

    __slots__ = (
        "_arena_number_by_id", "arena_numbers", "arenas", "demands", "extents", "groups", "kinds",
        "libraries", "marks", "names", "size",
    )  # fmt: skip

    def __init__(self) -> None:
        self.size = 0
        self._arena_number_by_id: dict[int, int] = {}
        self.arenas: list[bytes] = []
        self.names: list[str] = []
        self.kinds = bytearray()
        self.extents = bytearray()
        self.arena_numbers = bytearray()
        self.demands = bytearray()
        self.groups = bytearray()
        self.marks = bytearray()
        self.libraries: dict[int, Library] = {}

    def add(self, batch: SourceBatch, group: int = 0) -> None:
        """Append a batch; `group` is 1 + the number of its archive among the inputs, 0 for none."""
        arena_number = self._arena_number_by_id.setdefault(id(batch.arena), len(self.arenas))
        if arena_number == len(self.arenas):
            self.arenas.append(batch.arena)
            if group:  # a new arena of members has the files that a thin archive names
                self.size += len(batch.arena)
        count = len(batch.names)
        self.names += batch.names
        self.kinds += batch.kinds
        self.extents += batch.extents
        self.arena_numbers += arena_number.to_bytes(4, "little") * count
        self.demands += batch.demands
        self.groups += group.to_bytes(4, "little") * count
        self.marks += batch.marks

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, number: int) -> Source:
        offset, size = extent_at(self.extents, number)
        arena = self.arenas[
            int.from_bytes(self.arena_numbers[4 * number : 4 * number + 4], "little")
        ]
        return Source(number, self.names[number], self.kinds[number], arena, offset, size)

    def group(self, number: int) -> int:
        """Return 1 + the number of a source's archive among the inputs; 0 for none."""
        return int.from_bytes(self.groups[4 * number : 4 * number + 4], "little")

    def overlooked(self) -> set[int]:
        """Return the sources that nvlink would not read."""
        if not self.marks.strip(b"\0"):
            return set()
        return {number for number, mark in enumerate(self.marks) if mark & OVERLOOKED}

    def is_overlooked(self, number: int) -> bool:
        """Return whether nvlink would not read the source."""
        return bool(self.marks[number] & OVERLOOKED)
