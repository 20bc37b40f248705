"""Finds kernels that the host code of their file cannot register, since it lacks their names.

A kernel is registered by its name, a string that ends with a zero. Linkers let strings share their
tails, so the name is searched as the end of a string. Symbol tables do not count: the host function
that launches a kernel has the kernel's name even if the kernel is not registered.
"""

from __future__ import annotations

import re
from array import array

from pylink.size.model import CUBIN, HOST, NO_NUMBER, PARTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pylink.size.model import Leaf, Sizes
    from pylink.size.sources import Source

# Bytes that are searched in one piece.
WINDOW = 8 << 20
_TAIL = 8  # bytes at the end of a name that serve as its key
_TABLES = re.compile(r"\.(dynstr|dynsym|strtab|symtab|shstrtab|comment|debug|zdebug|gnu)")


def find_unnamed(sizes: Sizes, source: Source, leaves: Sequence[Leaf]) -> frozenset[int]:
    """The kernels of a file, as numbers of the ledger, whose names its host code does not have.

    `leaves` are all leaves of the file `source`, after all of its entries have been counted.
    """
    functions = sizes.ledger.functions()
    missing = {functions[number]: number for number in _kernels(sizes, leaves)}
    ranges = [
        (start, end)
        for start, end, leaf in _with_ranges(leaves)
        if leaf.kind == HOST and not _TABLES.match(leaf.section)
    ]
    for start, end in _join_neighbors(ranges):
        if not missing:
            break
        for name in _names_in(source, start, end, missing.keys()):
            missing.pop(name, None)
    return frozenset(missing.values())


def _kernels(sizes: Sizes, leaves: Iterable[Leaf]) -> set[int]:
    """Functions of linked cubins with code and parameters."""
    entries = array("i", [-1]) * sizes.numbers
    for leaf in leaves:
        if leaf.kind == CUBIN and leaf.number != NO_NUMBER:
            entries[leaf.number] = 0
    everything = array("i", range(len(sizes.ledger.functions()))).tobytes()
    kernels: dict[str, set[int]] = {"code": set(), "constants": set()}
    for row in sizes.ledger.sums(entries.tobytes(), everything, by_part=True):
        if row.function_group and PARTS[row.part] in kernels:
            kernels[PARTS[row.part]].add(row.function_group)
    return kernels["code"] & kernels["constants"]


def _with_ranges(leaves: Iterable[Leaf]) -> Iterator[tuple[int, int, Leaf]]:
    """Yield the start and end of each leaf; the leaves of a file follow each other."""
    start = 0
    for leaf in leaves:
        yield start, start + leaf.installed, leaf
        start += leaf.installed


def _join_neighbors(places: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join adjacent ranges."""
    joined: list[tuple[int, int]] = []
    for start, end in places:
        if joined and joined[-1][1] == start:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    return joined


def _names_in(source: Source, start: int, end: int, names: Iterable[bytes]) -> set[bytes]:
    """The names that are the end of a string in a range."""
    searched = set(names)
    by_tail: dict[bytes, list[bytes]] = {}
    for name in searched:
        by_tail.setdefault(name[-_TAIL:], []).append(name)
    shortest, longest = min(map(len, searched)), max(map(len, searched))
    letters = {byte for name in searched for byte in name} - {0}
    run = re.compile(b"[%s]{%d,}" % (re.escape(bytes(sorted(letters))), max(1, shortest)))
    present: set[bytes] = set()
    for offset in range(start, end, WINDOW):
        data = source.read(offset, min(WINDOW + longest, end - offset))
        for match in run.finditer(data):
            last = match.end()
            if data[last : last + 1] != b"\0":
                continue
            text = match[0]
            for length in range(min(len(text), _TAIL), 0, -1):
                for name in by_tail.get(text[-length:], ()):
                    if text.endswith(name):
                        present.add(name)
                if length <= shortest:
                    break
    return present
