"""What is compiled before it is linked: PTX and LTO-IR."""

from __future__ import annotations


class Piece:
    """One PTX text or LTO-IR module of the link, or the cubin that it became.

    `name` is that of its source and `kind` one of `PIECE_KINDS`. `embedded` says that it was an
    entry of a fat binary, `arch` is the entry's SM number, 0 for what came as a file. `options` is
    the text of ptxas options that a PTX entry contains. The data of an LTO-IR entry is a fat binary
    with that entry alone, which nvJitLink can read; the payload by itself is scrambled. `hosted`
    says that the fat binary was part of a host object. `number` counts the sources: that of the
    one it is from.
    """

    __slots__ = ("arch", "data", "embedded", "hosted", "kind", "name", "number", "options")

    def __init__(
        self,
        name: str,
        kind: int,
        data: bytes,
        *,
        arch: int = 0,
        embedded: bool = False,
        hosted: bool = False,
        number: int = -1,
        options: str = "",
    ) -> None:
        self.name = name
        self.kind = kind
        self.data = data
        self.arch = arch
        self.embedded = embedded
        self.hosted = hosted
        self.number = number
        self.options = options
