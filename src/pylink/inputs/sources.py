"""The sources of a link, inputs and members of archives, in columns: archives have thousands."""

from __future__ import annotations

from pylink.inputs.kinds import SHARED
from pylink.tables import extent, extent_at

# When a file of the link is taken; selection.pyx has the same numbers.
ALWAYS = 0
SYSTEM = 1  # when functions are still undefined where it stands, or later something it defines is
NEEDED = 2  # when it defines what another file needs
TOGETHER = 3  # with all of its group, when one of them defines what another file needs

# Marks of a source: all of its archive is asked for; nvlink would not have looked at it.
WHOLE = 1
OVERLOOKED = 2


class Library:
    """What the dynamic symbols of the library in `file` say.

    `open` and `closed` are the ids of both kinds, `wrappers` those whose wrapper other files see,
    and `interposable` the closed ones for which the definition of a program would come first.
    `contained` are the modules in the file: a library that only holds a device link has none, and
    its ids are closed. `place` counts the sources in front of it. `anchor` is a function that the
    library alone defines, None when there is none. `has_runtime` says that it has a CUDA runtime
    of its own. `modules` counts what it holds of both kinds. `source` is the file itself, None
    where only parts of it were read.
    """

    __slots__ = (
        "anchor",
        "closed",
        "contained",
        "file",
        "has_runtime",
        "interposable",
        "modules",
        "open",
        "place",
        "source",
        "wrappers",
    )

    def __init__(self, file: str) -> None:
        self.file = file
        self.source: Source | None = None
        self.open: dict[bytes, None] = {}
        self.closed: dict[bytes, None] = {}
        self.wrappers: set[bytes] = set()
        self.interposable: set[bytes] = set()
        self.contained: set[bytes] = set()
        self.place = 0
        self.anchor: bytes | None = None
        self.has_runtime = False
        self.modules = 0


class Source:
    """One source of a link, an object for one row: `size` bytes of `arena` from `offset` on.

    `number` is its row, `name` what diagnostics show, `archive:member` for a member.
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
        return self.arena[self.offset : self.offset + self.size]


class Run:
    """Sources that lie in one arena, in columns: those of `Sources` except for homes and groups."""

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

    def as_library(self, number: int) -> Run:
        """One of them as a shared library."""
        row = self.extents[16 * number : 16 * number + 16]
        return Run(self.arena, [self.names[number]], bytes([SHARED]), row)

    def part(self, first: int, end: int) -> Run:
        """Those from `first` to before `end`."""
        if end - first == len(self.names):
            return self
        names, extents = self.names[first:end], self.extents[16 * first : 16 * end]
        part = Run(self.arena, names, self.kinds[first:end], extents)
        part.demands = self.demands[first:end]
        part.marks = self.marks[first:end]
        return part

    def at(self, numbers: list[int], names: list[str]) -> Run:
        """Those with these numbers, by other names."""
        if numbers == list(range(len(self.names))):
            return Run(self.arena, names, self.kinds, self.extents)
        chosen_kinds = bytes(map(self.kinds.__getitem__, numbers))
        rows = memoryview(self.extents).cast("Q")
        extents = b"".join(extent(rows[2 * number], rows[2 * number + 1]) for number in numbers)
        return Run(self.arena, names, chosen_kinds, extents)

    def only(self, wanted: bytes) -> Run:
        """Those of the kinds `wanted`."""
        if not self.kinds.translate(None, wanted):
            return self
        chosen = [number for number, kind in enumerate(self.kinds) if kind in wanted]
        extents = b"".join(self.extents[16 * number : 16 * number + 16] for number in chosen)
        names = [self.names[number] for number in chosen]
        only = Run(self.arena, names, bytes(self.kinds[number] for number in chosen), extents)
        only.demands = bytes(self.demands[number] for number in chosen)
        only.marks = bytes(self.marks[number] for number in chosen)
        return only


class Sources:
    """Columns with a row for each input and archive member, in the order of the link.

    `names` are what diagnostics show, `kinds` a byte of `kinds.py` each, `extents` have offset and
    size (u64) in one of the `arenas`, whose number `homes` has (int32). `demands` say when the
    source is linked (ALWAYS and so on), `groups` from which archive it is (int32), 0 for none, and
    `marks` have WHOLE and OVERLOOKED. `libraries` are what shared libraries say of their code, by
    number. `size` has the bytes of the files that these came from.
    """

    __slots__ = (
        "_numbers_known",
        "arenas",
        "demands",
        "extents",
        "groups",
        "homes",
        "kinds",
        "libraries",
        "marks",
        "names",
        "size",
    )

    def __init__(self) -> None:
        self.size = 0
        self._numbers_known: dict[int, int] = {}
        self.arenas: list[bytes] = []
        self.names: list[str] = []
        self.kinds = bytearray()
        self.extents = bytearray()
        self.homes = bytearray()
        self.demands = bytearray()
        self.groups = bytearray()
        self.marks = bytearray()
        self.libraries: dict[int, Library] = {}

    def add(self, run: Run, group: int = 0) -> None:
        """Put a run after the others."""
        home = self._numbers_known.setdefault(id(run.arena), len(self.arenas))
        if home == len(self.arenas):
            self.arenas.append(run.arena)
            if group:  # files that a thin archive names
                self.size += len(run.arena)
        count = len(run.names)
        self.names += run.names
        self.kinds += run.kinds
        self.extents += run.extents
        self.homes += home.to_bytes(4, "little") * count
        self.demands += run.demands
        self.groups += group.to_bytes(4, "little") * count
        self.marks += run.marks

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, number: int) -> Source:
        offset, size = extent_at(self.extents, number)
        arena = self.arenas[int.from_bytes(self.homes[4 * number : 4 * number + 4], "little")]
        return Source(number, self.names[number], self.kinds[number], arena, offset, size)

    def group(self, number: int) -> int:
        """Which archive a source is from, 0 for none."""
        return int.from_bytes(self.groups[4 * number : 4 * number + 4], "little")

    def overlooked(self) -> set[int]:
        """The sources that nvlink would not have looked at."""
        if not self.marks.strip(b"\0"):
            return set()
        return {number for number, mark in enumerate(self.marks) if mark & OVERLOOKED}

    def is_overlooked(self, number: int) -> bool:
        return bool(self.marks[number] & OVERLOOKED)
