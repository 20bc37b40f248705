"""What inputs are made of: sources, which may hold several things, and what was found in them."""

from __future__ import annotations

from pylink.inputs.kinds import CUBIN, LTOIR, PTX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# When a file of the link is taken; selection.pyx has the same numbers.
ALWAYS = 0
SYSTEM = 1  # when functions are still undefined where it stands, or later something it defines is
NEEDED = 2  # when it defines what another file needs
TOGETHER = 3  # with all of its group, when one of them defines what another file needs

# The kinds of pieces, which are also kinds of inputs.
PIECE_KINDS = (CUBIN, PTX, LTOIR)


class Library:
    """What the dynamic symbols of the library in `file` say.

    `open` and `closed` are the ids of both kinds, `wrappers` those whose wrapper other files see,
    and `interposable` the closed ones for which the definition of a program would come first.
    `anchor` is a function that the library alone defines, None when there is none. `has_runtime`
    says that it has a CUDA runtime of its own. `modules` counts what it holds of both kinds.
    """

    __slots__ = (
        "anchor",
        "closed",
        "file",
        "has_runtime",
        "interposable",
        "modules",
        "open",
        "wrappers",
    )

    def __init__(self, file: str) -> None:
        self.file = file
        self.open: dict[bytes, None] = {}
        self.closed: dict[bytes, None] = {}
        self.wrappers: set[bytes] = set()
        self.interposable: set[bytes] = set()
        self.anchor: bytes | None = None
        self.has_runtime = False
        self.modules = 0


class Source:
    """An input or an archive member: `size` bytes of `arena` from `offset` on.

    `name` is what diagnostics show, `archive:member` for a member. Of an archive and its members,
    `whole` says that all of it is asked for. `overlooked` says that nvlink would not have looked
    into the archive, or not at the member. `demand` says when the source is linked and `group` from
    which archive it is, 0 for none. `library` is what a shared library says of its code, None for
    all else.
    """

    __slots__ = (
        "arena",
        "demand",
        "group",
        "kind",
        "library",
        "name",
        "offset",
        "overlooked",
        "size",
        "whole",
    )

    def __init__(self, name: str, kind: int, arena: bytes, offset: int, size: int) -> None:
        self.name = name
        self.kind = kind
        self.arena = arena
        self.offset = offset
        self.size = size
        self.whole = False
        self.overlooked = False
        self.demand = ALWAYS
        self.group = 0
        self.library: Library | None = None

    @property
    def data(self) -> bytes:
        return self.arena[self.offset : self.offset + self.size]


class Piece:
    """One cubin, PTX text or LTO-IR module of the link.

    `name` is that of its source and `kind` one of `PIECE_KINDS`. `embedded` says that it was an
    entry of a fat binary, `arch` is the entry's SM number, 0 for what came as a file. `options` is
    the text of ptxas options that a PTX entry carries. The data of an LTO-IR entry is a fat binary
    with that entry alone, which nvJitLink can read; the payload by itself is scrambled. `hosted`
    says that the fat binary was part of a host object. `number` counts the sources: that of the
    one it is from.

    `later` gives the data of `size` bytes where there is none yet: a link decompresses a cubin
    when it has a place for it. `packed` says where it is compressed, so that native code can do so
    faster: bytes, offset and size in them, codec.
    """

    __slots__ = (
        "arch",
        "data",
        "embedded",
        "hosted",
        "kind",
        "later",
        "name",
        "number",
        "options",
        "packed",
        "size",
    )

    def __init__(
        self,
        name: str,
        kind: int,
        data: bytes,
        *,
        arch: int = 0,
        embedded: bool = False,
        hosted: bool = False,
        later: Callable[[], bytes] | None = None,
        size: int = 0,
    ) -> None:
        self.name = name
        self.kind = kind
        self.data = data
        self.arch = arch
        self.embedded = embedded
        self.hosted = hosted
        self.later = later
        self.options = ""
        self.packed: tuple[bytes, int, int, int] | None = None
        self.number = -1
        self.size = size or len(data)

    def take(self) -> bytes:
        """The data, which the piece no longer holds."""
        data = self.data if self.later is None else self.later()
        self.data = b""
        return data


class Hosted:
    """What was found in a host object or fat binary.

    `pieces` are those for the target. `ids` has the module ids, None without `__nv_module_id`;
    `external` and `internal` are the kernels that host code names, None without a list, and
    `variables` the device and constant variables that it does.
    `containers` is 0 for a host object without device code. Of a shared library, containers and
    ids are those that are linked.
    """

    __slots__ = ("_arena", "_ids", "_row", "containers", "pieces")

    def __init__(self, row: tuple[int, ...], arena: bytes) -> None:
        self._arena = arena
        self._row = row
        self._ids: list[bytes] | None = None
        self.containers = row[0]
        self.pieces: list[Piece] = []

    @property
    def ids(self) -> list[bytes] | None:
        if self._ids is not None:
            return self._ids
        return names_at(self._arena, self._row[2], self._row[3])

    def restrict(self, ids: list[bytes]) -> None:
        """Say which modules of a shared library are linked."""
        self._ids = ids
        self.containers = len(ids)

    def lists_hold(self, count: int) -> bool:
        """Whether each list of names can be that of `count` modules, which all end with a zero."""
        ranges = zip(self._row[4:16:2], self._row[5:16:2], strict=True)
        return all(
            offset and self._arena.count(0, offset, offset + size) >= count
            for offset, size in ranges
        )

    @property
    def external(self) -> list[bytes] | None:
        return names_at(self._arena, self._row[4], self._row[5])

    @property
    def internal(self) -> list[bytes] | None:
        return names_at(self._arena, self._row[6], self._row[7])

    @property
    def variables(self) -> list[bytes]:
        ranges = zip(self._row[8:16:2], self._row[9:16:2], strict=True)
        return [name for place in ranges for name in names_at(self._arena, *place) or ()]


def names_at(arena: bytes, offset: int, size: int) -> list[bytes] | None:
    """The names between zero bytes in a section; None when there is no section (offset 0)."""
    if not offset:
        return None
    return [name for name in arena[offset : offset + size].split(b"\0") if name]
