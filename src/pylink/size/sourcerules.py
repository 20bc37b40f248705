"""Rules of class C: bytes that a program gets rid of only by a change of its sources.

`reductions.py` says what the classes are.
"""

from __future__ import annotations

from array import array

from pylink.size.chips import TEGRA
from pylink.size.levels import SHARED
from pylink.size.model import CUBIN, NO_NUMBER, RELOCATABLE, Leaf, Reduction, Sizes, remove_leaves
from pylink.terminal.numbers import count_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.size.levels import Row

# Most templates to list, and the least number of instances of a listed template.
_MAX_TEMPLATES, _MANY_INSTANCES = 3, 16


def repeated_contents(sizes: Sizes) -> Iterable[Reduction]:
    """Yield functions and data that linked cubins of one file and target contain more than once.

    There is one reduction for functions and one for data. The real savings depend on the sources,
    so the figure is an estimate: the share of the entries' bytes that all copies except the first
    have.
    """
    groups: dict[tuple[int, str], int] = {}
    entry_groups = array("i", [-1]) * sizes.entry_count
    by_number = {}
    for leaf in sizes.leaves:
        if leaf.kind == CUBIN and leaf.number != NO_NUMBER:
            key = leaf.file, leaf.target
            entry_groups[leaf.number] = groups.setdefault(key, len(groups))
            by_number[leaf.number] = leaf
    repeated: dict[bool, list[tuple[Leaf, int]]] = {True: [], False: []}
    for copy in sizes.ledger.repeats(entry_groups.tobytes()):
        repeated[bool(copy.function)].append((by_number[copy.entry], copy.size))
    for is_code, rule, noun, how in (
        (True, "repeated-functions", "functions whose code another unit has", "-rdc=true"),
        (False, "repeated-data", "tables that another unit has", "define data in one unit"),
    ):
        copies = repeated[is_code]
        installed = sum(
            size * (leaf.installed - leaf.header) // max(1, leaf.unpacked) for leaf, size in copies
        )
        if not installed:
            continue
        download = None
        if sizes.downloads:
            download = sum(
                size * ((leaf.download or 0) - leaf.header_download) // max(1, leaf.unpacked)
                for leaf, size in copies
            )
        yield Reduction(
            rule,
            f"{len(copies)} {noun if len(copies) > 1 else noun.replace('s ', ' ', 1)}",
            "C",
            installed=installed,
            download=download,
            entries=len({id(leaf) for leaf, _ in copies}),
            condition="sources changed",
            how=how,
            estimated=True,
            leaves=list({id(leaf): leaf for leaf, _ in copies}.values()),
        )


def unnamed_kernels(sizes: Sizes) -> Iterable[Reduction]:
    """Yield kernels in linked code of files whose host code does not have their names.

    Such host code cannot register the kernels, so it cannot launch them by `<<<>>>`. A program that
    loads the code by itself, with names that it builds or lists, still may.
    """
    entry_groups = array("i", [-1]) * sizes.entry_count
    leaves_by_file: dict[int, list[Leaf]] = {}
    for leaf in sizes.leaves:
        if leaf.kind == CUBIN and leaf.number != NO_NUMBER and sizes.files[leaf.file].unnamed:
            leaves_by_file.setdefault(leaf.file, []).append(leaf)
            entry_groups[leaf.number] = leaf.file
    function_groups = array("i", range(len(sizes.ledger.functions()))).tobytes()
    installed = download = 0
    kernels: set[tuple[int, int]] = set()
    for row in sizes.ledger.sums(entry_groups.tobytes(), function_groups, by_part=False):
        if row.function_group in sizes.files[row.entry_group].unnamed:
            kernels.add((row.entry_group, row.function_group))
            installed += row.installed
            download += row.download
    if kernels:
        leaves = [leaf for file_leaves in leaves_by_file.values() for leaf in file_leaves]
        yield Reduction(
            "unnamed-kernels",
            f"{count_text(len(kernels), 'kernel')} that host code does not name",
            "C",
            installed=installed,
            download=download if sizes.downloads else None,
            entries=len(leaves),
            condition="no program loads them by itself",
            how="omit kernels that nothing launches",
            estimated=True,
            leaves=leaves,
        )


def large_templates(sizes: Sizes, templates: list[Row]) -> Iterable[Reduction]:
    """Yield the largest templates with many instances; only the sources can reduce their number."""
    large = [row for row in templates if row.count >= _MANY_INSTANCES and row.keys[0] != SHARED]
    for row in large[:_MAX_TEMPLATES]:
        yield Reduction(
            "many-instances",
            f"{row.keys[0]}: {row.count} instances",
            "C",
            installed=row.installed,
            download=row.download if sizes.downloads else None,
            entries=row.count,
            condition="all of them would have to go",
            how="fewer instances",
            estimated=row.estimated,
        )


def arm_only_chips(sizes: Sizes) -> Iterable[Reduction]:
    """Yield code in x86-64 files for chips that, as far as is known, only have Arm hosts."""
    tegra_targets = {f"sm_{number}" for number in TEGRA}
    leaves = [
        leaf
        for leaf in sizes.leaves
        if sizes.files[leaf.file].is_x86
        and leaf.kind in (CUBIN, RELOCATABLE)
        and leaf.target.rstrip("af") in tegra_targets
    ]
    chips = sorted({leaf.target for leaf in leaves})
    yield from remove_leaves(
        "other-hosts",
        f"{count_text(len(leaves), 'cubin')} for {', '.join(chips)} in x86-64 files",
        "C",
        leaves,
        "these chips have Arm hosts only",
        "omit their code=sm_N",
    )
