"""Code that is compiled before it is linked: PTX and LTO-IR."""

from __future__ import annotations


class CompileInput:
    """One PTX text or LTO-IR module of the link, or the cubin that it became.

    `name` and `number` are those of its source, `kind` is PTX, LTOIR or, when compiled, CUBIN.
    `embedded` says that it was an entry of a fat binary, `hosted` that the fat binary was in a host
    object. `arch` is the entry's SM number, 0 for a file. `options` is the text of ptxas options
    that a PTX entry contains. The data of an LTO-IR entry is a fat binary with only this entry,
    which nvJitLink can read; the payload alone is scrambled.
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
