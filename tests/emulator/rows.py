"""What tests of rows of docs/nvlink-differences.md share, and which row each of them executes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest
from helpers import oracle
from helpers.keywords import keywords

import pylink
from emulator.errors import Fault, Unsupported
from emulator.grid import Grid
from emulator.load import Loaded
from emulator.program import Program

LANES = 32
MASK = 0xFFFFFFFF
ALL = pytest.mark.parametrize("arch", ["80", "90a", "100"])

Test = TypeVar("Test", bound=Callable[..., None])


def executes(*rows: str) -> Callable[[Test], Test]:
    """Mark a test that executes rows, each given by words that its first cell alone has.

    Its architectures are those in the row's last column (`tests/unit/test_docs_executed.py`).
    """

    def marked(test: Test) -> Test:
        test.executes = rows  # type: ignore[attr-defined]
        return test

    return marked


CHOSEN = """
typedef unsigned u;
typedef u (*F)(u);
inline __device__ __noinline__ u plain(u x) { return x * 7u + (x >> 2); }
inline __device__ __noinline__ u chosen(u x) {
    switch (x % 8) {
    case 0: return x + 3;
    case 1: return x * 5;
    case 2: return x ^ 0x3c;
    case 3: return x - 9;
    case 4: return x << 1 | 1;
    case 5: return ~x;
    case 6: return x / 3;
    }
    return x * x;
}
"""


def plain(x: int) -> int:
    return x * 7 + (x >> 2) & MASK


def chosen(x: int) -> int:
    cases = [x + 3, x * 5, x ^ 0x3C, x - 9, x << 1 | 1, ~x, x // 3, x * x]
    return cases[x % 8] & MASK


def theirs(cubins: Sequence[bytes], arch: str, options: Sequence[str] = ()) -> bytes:
    done = oracle.link(cubins, arch, options)
    assert done.image is not None, done.stderr
    return done.image


def ours(cubins: Sequence[bytes], arch: str, options: Sequence[str] = ()) -> bytes:
    inputs = [(f"m{i}.cubin", cubin) for i, cubin in enumerate(cubins)]
    words = {"nvlink_version": oracle.current(), **keywords(options)}
    return pylink.link(inputs, arch=f"sm_{arch}", **words).image


def assembled(text: str, arch: str) -> bytes:
    head = f".version 9.0\n.target sm_{oracle.PTX_ARCH[arch]}\n.address_size 64\n"
    return oracle.assemble(head + text, arch)


def compiled(sources: Sequence[str], arch: str) -> list[bytes]:
    return [oracle.compile(text, arch, name=f"m{i}.cu") for i, text in enumerate(sources)]


def result(image: bytes, arch: str, kernel: str = "k", *, shared: int = 0) -> list[int] | str:
    """What a kernel makes of the numbers of its lanes, or why it ends."""
    loaded = Loaded(image, arch)
    data = loaded.memory.place(struct.pack(f"<{LANES}I", *range(LANES)))
    grid = Grid(
        Program(loaded),
        kernel,
        parameters=struct.pack("<Q", data),
        shared=shared,
        instructions=50_000,
    )
    try:
        grid.run()
    except (Fault, Unsupported) as error:
        return str(error)
    return list(struct.unpack(f"<{LANES}I", loaded.memory.read(data, 4 * LANES)))
