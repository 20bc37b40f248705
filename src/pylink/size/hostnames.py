"""Finds kernels that the host code of their file cannot register, since it lacks their names.

Host code registers a kernel by the kernel's name, a string that ends with a zero. Linkers let
strings share their tails, so the name is searched as the end of a string. Symbol tables do not
count: the host function that launches a kernel has the kernel's name even if the kernel is not
registered.
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

# Bytes of a file that are read and searched at once.
WINDOW = 8 << 20
_TAIL = 8  # number of bytes at the end of a name that serve as the key of a dictionary
# Beginnings of the names of sections in which a kernel's name does not register it: symbols,
# comments, debug data and others.
_TABLE_SECTIONS = re.compile(r"\.(dynstr|dynsym|strtab|symtab|shstrtab|comment|debug|zdebug|gnu)")


def find_unnamed(sizes: Sizes, source: Source, leaves: Sequence[Leaf]) -> frozenset[int]:
    """Return the numbers (in `sizes.ledger`) of a file's kernels whose names its host code lacks.

    `leaves` are all leaves of the file `source`, after all of its entries have been counted.
    """
    functions = sizes.ledger.functions()
    missing = {functions[number]: number for number in _find_kernels(sizes, leaves)}
    ranges = [
        (start, end)
        for start, end, leaf in _leaf_ranges(leaves)
        if leaf.kind == HOST and not _TABLE_SECTIONS.match(leaf.section)
    ]
    for start, end in _join_neighbors(ranges):
        if not missing:
            break
        for name in _find_names(source, start, end, missing.keys()):
            missing.pop(name, None)
    return frozenset(missing.values())


def _find_kernels(sizes: Sizes, leaves: Iterable[Leaf]) -> set[int]:
    """Return the numbers (in `sizes.ledger`) of kernels in linked cubins: code with parameters."""
    entry_groups = array("i", [-1]) * sizes.entry_count
    for leaf in leaves:
        if leaf.kind == CUBIN and leaf.number != NO_NUMBER:
            entry_groups[leaf.number] = 0
    function_groups = array("i", range(len(sizes.ledger.functions()))).tobytes()
    by_part: dict[str, set[int]] = {"code": set(), "constants": set()}
    for row in sizes.ledger.sums(entry_groups.tobytes(), function_groups, by_part=True):
        if row.function_group and PARTS[row.part] in by_part:
            by_part[PARTS[row.part]].add(row.function_group)
    # Parameters lie in the constant bank of a kernel.
    return by_part["code"] & by_part["constants"]


def _leaf_ranges(leaves: Iterable[Leaf]) -> Iterator[tuple[int, int, Leaf]]:
    """Yield each leaf (range of a file) with its start and end; leaves adjoin each other."""
    start = 0
    for leaf in leaves:
        yield start, start + leaf.installed, leaf
        start += leaf.installed


def _join_neighbors(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return sorted (start, end) ranges, with those that touch joined into one."""
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        if joined and joined[-1][1] == start:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    return joined


def _find_names(source: Source, start: int, end: int, names: Iterable[bytes]) -> set[bytes]:
    """Return those of `names` that end some string between two offsets of `source`."""
    searched = set(names)
    by_tail: dict[bytes, list[bytes]] = {}
    for name in searched:
        by_tail.setdefault(name[-_TAIL:], []).append(name)
    shortest, longest = min(map(len, searched)), max(map(len, searched))
    # Only runs as long as the shortest name are compared, in which each byte is one of some name.
    letters = {byte for name in searched for byte in name} - {0}
    run_pattern = re.compile(b"[%s]{%d,}" % (re.escape(bytes(sorted(letters))), max(1, shortest)))
    present: set[bytes] = set()
    for offset in range(start, end, WINDOW):
        data = source.read(offset, min(WINDOW + longest, end - offset))
        for match in run_pattern.finditer(data):
            run_end = match.end()
            if data[run_end : run_end + 1] != b"\0":
                continue
            run_text = match[0]
            for length in range(min(len(run_text), _TAIL), 0, -1):
                for name in by_tail.get(run_text[-length:], ()):
                    if run_text.endswith(name):
                        present.add(name)
                if length <= shortest:
                    break
    return present
