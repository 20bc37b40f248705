"""Adds up bytes by level. For any levels, each byte is in exactly one row."""

from __future__ import annotations

import re
from array import array
from functools import cached_property

from pylink.demangle.templates import describe
from pylink.size.model import DEVICE, ENTRY_HEADER, LEVELS, NO_NUMBER, PARTS, Leaf, Sizes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Levels below an entry, whose rows come from the ledger.
INNER = ("part", "template", "function")
SHARED = "(shared)"
OTHER_FUNCTIONS = "other functions"


class Row:
    """The bytes of one group; `keys` has a name for each level.

    `count` counts entries, or below entries functions. `estimated` means that installed bytes were
    shared in proportion to unpacked ones; below entries download bytes are always shared.
    """

    __slots__ = (
        "count", "download", "estimated", "functions", "installed", "keys", "unpacked",
    )  # fmt: skip

    def __init__(
        self,
        keys: tuple[str, ...],
        count: int = 0,
        unpacked: int = 0,
        installed: int = 0,
        download: int = 0,
        *,
        estimated: bool = False,
    ) -> None:
        self.keys, self.count = keys, count
        self.unpacked, self.installed, self.download = unpacked, installed, download
        self.estimated = estimated
        self.functions: set[int] = set()

    def __repr__(self) -> str:
        sizes = f"unpacked={self.unpacked}, installed={self.installed}, download={self.download}"
        return f"Row({self.keys}, count={self.count}, {sizes}, estimated={self.estimated})"


class Selection:
    """Selects the bytes of a target, and of functions whose name matches a pattern.

    A target without suffix includes those with a suffix.
    """

    __slots__ = ("arch", "match")

    def __init__(self, arch: str = "", match: re.Pattern[str] | None = None) -> None:
        self.arch, self.match = arch, match

    def takes(self, leaf: Leaf) -> bool:
        if not self.arch:
            return True
        number, _, suffix = leaf.target.partition("_")[2], "", ""
        selected = self.arch.rpartition("_")[2]
        if selected[-1:].isdigit():
            number = re.sub(r"\D+$", suffix, number)
        return number == selected


EVERYTHING = Selection()


class Names:
    """Names and templates of a ledger's functions by number, computed at their first use."""

    def __init__(self, sizes: Sizes) -> None:
        self.mangled = [
            name.decode("utf-8", "surrogateescape") for name in sizes.ledger.functions()
        ]

    @cached_property
    def _names_and_templates(self) -> list[tuple[str, str]]:
        described = [describe(name) for name in self.mangled[1:]]
        return [(SHARED, SHARED), *((name, template or name) for name, template in described)]

    @cached_property
    def demangled(self) -> list[str]:
        return [name for name, _ in self._names_and_templates]

    @cached_property
    def templates(self) -> list[str]:
        return [template for _, template in self._names_and_templates]

    def function_groups(self, pattern: re.Pattern[str] | None) -> bytes:
        """The group of each function: its number, or -1 if it is not selected."""
        if pattern is None:
            return array("i", range(len(self.mangled))).tobytes()
        return array(
            "i",
            (
                number
                if number and (pattern.search(name) or pattern.search(self.demangled[number]))
                else -1
                for number, name in enumerate(self.mangled)
            ),
        ).tobytes()


def rows(sizes: Sizes, by: Sequence[str], selection: Selection = EVERYTHING) -> list[Row]:
    """A row for each group of bytes, largest first.

    ValueError for an unknown level.
    """
    for level in by:
        if level not in LEVELS:
            raise ValueError(f"'{level}' is not a level: {', '.join(LEVELS)}")
    outer = [level for level in by if level not in INNER]
    leaves = sizes.leaves
    if selection.arch:
        leaves = [leaf for leaf in leaves if selection.takes(leaf)]
    groups = _group_leaves(sizes, leaves, [_OF_LEAF[level] for level in outer])
    if len(outer) == len(by) and selection.match is None:
        sums = [_sum(key, leaves) for key, leaves in groups.items()]
    else:
        sums = _inner_rows(sizes, by, groups, selection)
    largest = "download" if sizes.downloads else "installed"
    sums.sort(key=lambda row: (-getattr(row, largest), -row.installed, -row.unpacked, row.keys))
    return sums


def largest_functions(sizes: Sizes, most: int) -> list[tuple[str, int]]:
    """Installed bytes of the largest functions by mangled name, of the others, and shared bytes."""
    entries = bytes(4 * sizes.numbers)
    names = Names(sizes)
    sums = sizes.ledger.sums(entries, names.function_groups(None), by_part=False)
    by_size = sorted(
        ((row.installed, names.mangled[row.function_group]) for row in sums if row.function_group),
        reverse=True,
    )
    others = sum(size for size, _ in by_size[most:])
    shared = sum(leaf.installed for leaf in sizes.leaves) - sum(size for size, _ in by_size)
    largest = [(name, size) for size, name in by_size[:most]]
    return [*largest, (OTHER_FUNCTIONS, others), (SHARED, shared)]


def _group_leaves(
    sizes: Sizes, leaves: list[Leaf], levels: list[Callable[[Sizes, Leaf], str]]
) -> dict[tuple[str, ...], list[Leaf]]:
    """Group leaves by their names at these levels."""
    if not levels:
        return {(): leaves} if leaves else {}
    groups: dict[tuple[str, ...], list[Leaf]] = {}
    if len(levels) == 1:  # the case of the first screen
        (name_of,) = levels
        names: dict[str, list[Leaf]] = {}
        for leaf in leaves:
            names.setdefault(name_of(sizes, leaf), []).append(leaf)
        return {(name,): grouped_leaves for name, grouped_leaves in names.items()}
    for leaf in leaves:
        key = tuple([name_of(sizes, leaf) for name_of in levels])
        groups.setdefault(key, []).append(leaf)
    return groups


def _sum(key: tuple[str, ...], leaves: list[Leaf]) -> Row:
    count = unpacked = installed = download = 0
    for leaf in leaves:
        count += leaf.kind in DEVICE
        unpacked += leaf.unpacked
        installed += leaf.installed
        download += leaf.download or 0
    return Row(key, count, unpacked, installed, download)


def _inner_rows(
    sizes: Sizes,
    by: Sequence[str],
    groups: dict[tuple[str, ...], list[Leaf]],
    selection: Selection,
) -> list[Row]:
    names = Names(sizes)
    entry_groups = array("i", [-1]) * sizes.numbers
    for number, leaves in enumerate(groups.values()):
        for leaf in leaves:
            if leaf.number != NO_NUMBER:
                entry_groups[leaf.number] = number
    packed = [any(leaf.codec != "none" for leaf in leaves) for leaves in groups.values()]
    outer = list(groups)
    table: dict[tuple[str, ...], Row] = {}

    def row_of(group: int, part: str, template: str, function: str) -> Row:
        inner = {"part": part, "template": template, "function": function}
        rest = iter(outer[group])
        key = tuple(inner[level] if level in inner else next(rest) for level in by)
        if key not in table:
            table[key] = Row(key)
        return table[key]

    for total in sizes.ledger.sums(
        entry_groups.tobytes(), names.function_groups(selection.match), by_part="part" in by
    ):
        function = total.function_group
        part_name = PARTS[total.part] if total.part >= 0 else ""
        template = names.templates[function] if "template" in by else ""
        function_name = names.demangled[function] if "function" in by else ""
        row = row_of(total.entry_group, part_name, template, function_name)
        row.unpacked += total.unpacked
        row.installed += total.installed
        row.download += total.download
        row.estimated = row.estimated or packed[total.entry_group]
        if function:
            row.functions.add(function)
    if selection.match is None:
        for group, leaves in enumerate(groups.values()):
            _add_outer(row_of, group, leaves)
    for row in table.values():
        row.count = len(row.functions)
    return list(table.values())


def _add_outer(row_of: Callable[[int, str, str, str], Row], group: int, leaves: list[Leaf]) -> None:
    """Add bytes of leaves that are not in the ledger: complete leaves, and headers of entries."""
    complete: dict[str, list[Leaf]] = {}
    headers = downloads = 0
    for leaf in leaves:
        if leaf.number == NO_NUMBER:
            complete.setdefault(leaf.kind, []).append(leaf)
        elif leaf.header:
            headers += leaf.header
            downloads += leaf.header_download
    for kind, kind_leaves in complete.items():
        name = f"({kind})"
        row, outside = row_of(group, kind, name, name), _sum((), kind_leaves)
        row.unpacked += outside.unpacked
        row.installed += outside.installed
        row.download += outside.download
    if headers:
        row = row_of(group, ENTRY_HEADER, SHARED, SHARED)
        row.installed += headers
        row.download += downloads


_OF_LEAF: dict[str, Callable[[Sizes, Leaf], str]] = {
    "archive": lambda sizes, leaf: sizes.files[leaf.file].archive,
    "file": lambda sizes, leaf: sizes.files[leaf.file].name or "(directory of the archive)",
    "kind": lambda sizes, leaf: leaf.kind,
    "target": lambda sizes, leaf: leaf.target or f"({leaf.kind})",
    "unit": lambda sizes, leaf: leaf.unit or leaf.section or f"({leaf.kind})",
}
