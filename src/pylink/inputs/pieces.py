"""What inputs are made of: sources, which may hold several things, and the pieces in them."""

from __future__ import annotations

from pylink.inputs.kinds import CUBIN, LTOIR, PTX

# The kinds of pieces, which are also kinds of inputs.
PIECE_KINDS = (CUBIN, PTX, LTOIR)


class Source:
    """An input or an archive member: `size` bytes of `arena` from `offset` on.

    `name` is what diagnostics show, `archive:member` for a member; `library` says that it came
    through -l.
    """

    __slots__ = ("arena", "kind", "library", "name", "offset", "size")

    def __init__(
        self, name: str, kind: int, arena: bytes, offset: int, size: int, *, library: bool = False
    ) -> None:
        self.name = name
        self.kind = kind
        self.arena = arena
        self.offset = offset
        self.size = size
        self.library = library

    @property
    def data(self) -> bytes:
        return self.arena[self.offset : self.offset + self.size]


class Piece:
    """One cubin, PTX text or LTO-IR module of the link.

    `name` is that of its source and `kind` one of `PIECE_KINDS`. `embedded` says that it was an
    entry of a fat binary, `arch` is the entry's SM number, 0 for what came as a file. `options` is
    the text of ptxas options that a PTX entry carries. The data of an LTO-IR entry is a fat binary
    with that entry alone, which nvJitLink can read; the payload by itself is scrambled.
    """

    __slots__ = ("arch", "data", "embedded", "kind", "name", "options")

    def __init__(
        self,
        name: str,
        kind: int,
        data: bytes,
        *,
        arch: int = 0,
        embedded: bool = False,
        options: str = "",
    ) -> None:
        self.name = name
        self.kind = kind
        self.data = data
        self.arch = arch
        self.embedded = embedded
        self.options = options
