"""Links and launches for tests of running code."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from helpers import oracle
from helpers.keywords import keywords

import pylink
from emulator.grid import Grid, Size
from emulator.load import Loaded
from emulator.program import Program

ARCHS = ("80", "86", "89", "90a", "100", "103", "120")


def link_both(cubins: Sequence[bytes], arch: str, options: Sequence[str] = ()) -> list[bytes]:
    """The images that nvlink and pylink make of cubins."""
    theirs = oracle.link(cubins, arch, options)
    assert theirs.code == 0, theirs.stderr
    assert theirs.image is not None
    inputs = [(f"m{i}.cubin", cubin) for i, cubin in enumerate(cubins)]
    return [theirs.image, pylink.link(inputs, arch=f"sm_{arch}", **keywords(options)).image]


class Run:
    """One launch of a kernel whose first parameter is a buffer of words."""

    def __init__(
        self,
        image: bytes,
        arch: str,
        kernel: str,
        words: Sequence[int],
        *rest: int,
        block: Size = (32, 1, 1),
        grid: Size = (1, 1, 1),
        shared: int = 0,
        cluster: bool = False,
    ) -> None:
        loaded = Loaded(image, arch)
        data = loaded.memory.place(struct.pack(f"<{len(words)}I", *(w & 0xFFFFFFFF for w in words)))
        parameters = struct.pack(f"<Q{len(rest)}i", data, *rest)
        self.grid = Grid(
            Program(loaded),
            kernel,
            grid=grid,
            block=block,
            parameters=parameters,
            shared=shared,
            cluster=cluster,
        )
        self.grid.run()
        self.words = struct.unpack(f"<{len(words)}I", loaded.memory.read(data, 4 * len(words)))
        self.printed = self.grid.printed
