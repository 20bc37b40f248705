"""Adds up bytes by levels such as kind and target.

Each byte is in exactly one row of a table, or in none if it is not selected.
"""

from __future__ import annotations

import re
from array import array
from functools import cached_property

from pylink.demangle.templates import describe
from pylink.size.model import DEVICE_KINDS, ENTRY_HEADER, LEVELS, NO_NUMBER, PARTS, Leaf, Sizes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Levels below an entry (a cubin, PTX or LTO-IR). Their rows come from the native ledger, which has
# the bytes of entries by part and function.
INNER = ("part", "template", "function")
# Names of two rows: bytes that no single function has, and all functions except the largest ones.
SHARED = "(shared)"
OTHER_FUNCTIONS = "other functions"


class Row:
    """The bytes of one group of a table; `keys` has its name at each level, such as its kind.

    `count` is the number of entries, or of functions for levels below entries (`INNER`), whose
    numbers in the ledger are in `functions`. `estimated` means that the installed bytes of
    compressed entries were divided among functions in proportion to unpacked bytes. For inner
    levels download bytes are always divided like this.
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

    An empty `arch` selects all targets, and a `match` of None all functions and all other bytes. A
    target without suffix, such as `sm_90`, includes those with one, such as `sm_90a`. `sm_90` and
    `compute_90` select the same bytes.
    """

    __slots__ = ("arch", "match")

    def __init__(self, arch: str = "", match: re.Pattern[str] | None = None) -> None:
        self.arch, self.match = arch, match

    def takes(self, leaf: Leaf) -> bool:
        """Return whether a leaf has the selected target."""
        if not self.arch:
            return True
        capability = leaf.target.partition("_")[2]
        selected = self.arch.rpartition("_")[2]
        if selected[-1:].isdigit():
            capability = re.sub(r"\D+$", "", capability)
        return capability == selected


EVERYTHING = Selection()


class Names:
    """Names and templates of a ledger's functions by number.

    Readable names and templates are computed at their first use. Number 0 stands for bytes that no
    single function has.
    """

    def __init__(self, sizes: Sizes) -> None:
        self.mangled = [
            name.decode("utf-8", "surrogateescape") for name in sizes.ledger.functions()
        ]

    @cached_property
    def _names_and_templates(self) -> list[tuple[str, str]]:
        """The readable name of each function, and its template (the name again without one)."""
        described = [describe(name) for name in self.mangled[1:]]
        return [(SHARED, SHARED), *((name, template or name) for name, template in described)]

    @cached_property
    def demangled(self) -> list[str]:
        return [name for name, _ in self._names_and_templates]

    @cached_property
    def templates(self) -> list[str]:
        return [template for _, template in self._names_and_templates]

    def function_groups(self, pattern: re.Pattern[str] | None) -> bytes:
        """Return the group of each function as native 32-bit integers, for `Ledger.sums`.

        Each function is a group of its own, or is in no group (-1) if the pattern does not match. A
        pattern omits number 0, too.
        """
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
    """Return a row for each group of bytes by the levels `by`, largest first.

    The order is by download bytes if there are any, else by installed bytes. ValueError for an
    unknown level.
    """
    for level in by:
        if level not in LEVELS:
            raise ValueError(f"'{level}' is not a level: {', '.join(LEVELS)}")
    outer_levels = [level for level in by if level not in INNER]
    leaves = sizes.leaves
    if selection.arch:
        leaves = [leaf for leaf in leaves if selection.takes(leaf)]
    groups = _group_leaves(sizes, leaves, [_LEAF_LEVELS[level] for level in outer_levels])
    if counts_functions(by, selection):
        level_rows = _inner_rows(sizes, by, groups, selection)
    else:
        level_rows = [_sum_leaves(key, leaves) for key, leaves in groups.items()]
    main_column = "download" if sizes.downloads else "installed"
    level_rows.sort(
        key=lambda row: (-getattr(row, main_column), -row.installed, -row.unpacked, row.keys)
    )
    return level_rows


def counts_functions(by: Sequence[str], selection: Selection) -> bool:
    """Return whether rows of the levels `by` count functions, not entries."""
    return any(level in INNER for level in by) or selection.match is not None


def largest_functions(sizes: Sizes, most: int) -> list[tuple[str, int]]:
    """Return mangled names and installed bytes of the `most` largest functions.

    Two rows follow: all other functions, and all bytes that no single function has, such as host
    bytes.
    """
    entry_groups = bytes(4 * sizes.entry_count)
    names = Names(sizes)
    sums = sizes.ledger.sums(entry_groups, names.function_groups(None), by_part=False)
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
    """Group leaves by their names; each of `levels` returns the name of a leaf at one level.

    Without levels, all leaves are one group.
    """
    if not levels:
        return {(): leaves} if leaves else {}
    groups: dict[tuple[str, ...], list[Leaf]] = {}
    if len(levels) == 1:  # a faster loop for the first screen
        (name_of,) = levels
        names: dict[str, list[Leaf]] = {}
        for leaf in leaves:
            names.setdefault(name_of(sizes, leaf), []).append(leaf)
        return {(name,): grouped_leaves for name, grouped_leaves in names.items()}
    for leaf in leaves:
        key = tuple([name_of(sizes, leaf) for name_of in levels])
        groups.setdefault(key, []).append(leaf)
    return groups


def _sum_leaves(key: tuple[str, ...], leaves: list[Leaf]) -> Row:
    """Return a row with the bytes of complete leaves; only entries are counted."""
    count = unpacked = installed = download = 0
    for leaf in leaves:
        count += leaf.kind in DEVICE_KINDS
        unpacked += leaf.unpacked
        installed += leaf.installed
        download += leaf.download or 0
    return Row(key, count, unpacked, installed, download)


def _inner_rows(
    sizes: Sizes, by: Sequence[str], groups: dict[tuple[str, ...], list[Leaf]], selection: Selection
) -> list[Row]:
    """Return the rows of levels below entries; `groups` are the leaves by their outer levels."""
    names = Names(sizes)
    # By number of an entry: that of its group in `groups`, or -1.
    entry_groups = array("i", [-1]) * sizes.entry_count
    for number, leaves in enumerate(groups.values()):
        for leaf in leaves:
            if leaf.number != NO_NUMBER:
                entry_groups[leaf.number] = number
    # By group: whether an entry is compressed.
    has_compressed = [any(leaf.codec != "none" for leaf in leaves) for leaves in groups.values()]
    outer_keys = list(groups)
    table: dict[tuple[str, ...], Row] = {}

    def row_of(group: int, part: str, template: str, function: str) -> Row:
        """Return the row of a group of leaves and these names; it is made at its first use."""
        inner_names = {"part": part, "template": template, "function": function}
        outer_names = iter(outer_keys[group])
        key = tuple(
            inner_names[level] if level in inner_names else next(outer_names) for level in by
        )
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
        row.estimated = row.estimated or has_compressed[total.entry_group]
        if function:
            row.functions.add(function)
    if selection.match is None:
        for group, leaves in enumerate(groups.values()):
            _add_outside_bytes(row_of, group, leaves)
    for row in table.values():
        row.count = len(row.functions)
    return list(table.values())


def _add_outside_bytes(
    row_of: Callable[[int, str, str, str], Row], group: int, leaves: list[Leaf]
) -> None:
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
        row, outside = row_of(group, kind, name, name), _sum_leaves((), kind_leaves)
        row.unpacked += outside.unpacked
        row.installed += outside.installed
        row.download += outside.download
    if headers:
        row = row_of(group, ENTRY_HEADER, SHARED, SHARED)
        row.installed += headers
        row.download += downloads


# By level, except those in INNER: the function that returns the name of a leaf.
_LEAF_LEVELS: dict[str, Callable[[Sizes, Leaf], str]] = {
    "archive": lambda sizes, leaf: sizes.files[leaf.file].archive,
    "file": lambda sizes, leaf: sizes.files[leaf.file].name or "(directory of the archive)",
    "kind": lambda sizes, leaf: leaf.kind,
    "target": lambda sizes, leaf: leaf.target or f"({leaf.kind})",
    "unit": lambda sizes, leaf: leaf.unit or leaf.section or f"({leaf.kind})",
}
