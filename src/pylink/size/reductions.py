"""Rules on removable bytes, each proved from the bytes of a file, and the bytes they save.

A reduction of class A follows from the bytes and NVIDIA's documents. One of class B needs a run on
a GPU, or has a condition that is printed. One of class C changes the sources. Each rule is
independent: savings of several do not add up.
"""

from __future__ import annotations

from array import array
from functools import cache
from itertools import pairwise

from pylink.size.levels import SHARED, rows
from pylink.size.model import (
    CUBIN,
    LOADED,
    NO_DEBUG,
    NO_NUMBER,
    PARTS,
    PTX,
    RELOCATABLE,
    SMALLER_MODE,
    Leaf,
    Sizes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.size.levels import Row

# Compute capabilities of all GPUs, from NVIDIA's list, as 10 * major + minor. Tegra GPUs run only
# code for exactly their capability, and this code runs on no other GPU.
CAPABILITIES = (
    50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 103, 110, 120, 121,
)  # fmt: skip
TEGRA = (53, 62, 72, 87, 101, 110)

# Rules of `pylink prune` that compress, and all of its rules.
COMPRESSION = frozenset({"stored-cubins", "lz4-cubins"})
PRUNABLE = ("unreached-ptx", "linked-copies", "twins", "stored-cubins", "lz4-cubins")

# Limit of listed templates, and the least number of instances of a listed template.
_MAX_TEMPLATES, _MANY_INSTANCES = 3, 16


class Reduction:
    """The bytes that one rule saves in some entries, as a line of output.

    `rule` is the name for programs, `title` the text for people, and `letter` the class.
    `condition` must be met first, `how` is the option to use. `installed` are bytes of files,
    `download` those of archives (None outside archives). `estimated` means that the entries were
    not compressed again. `leaves` are the entries concerned.
    """

    def __init__(
        self,
        rule: str,
        title: str,
        letter: str,
        *,
        installed: int,
        download: int | None,
        entries: int,
        condition: str,
        how: str,
        estimated: bool = False,
        leaves: list[Leaf] | None = None,
    ) -> None:
        self.rule, self.title, self.letter = rule, title, letter
        self.installed, self.download, self.entries = installed, download, entries
        self.condition, self.how, self.estimated = condition, how, estimated
        self.leaves = leaves or []

    def as_row(self) -> dict[str, object]:
        """Return the fields of the JSON document, which does not have the leaves."""
        return {name: value for name, value in vars(self).items() if name != "leaves"}


def reductions(sizes: Sizes, templates: list[Row] | None = None) -> list[Reduction]:
    """Return all reductions, largest first; class C, which only people can decide, comes last.

    `templates` are the rows of the level "template", for callers that have them already.
    """
    all_reductions = [
        *_linked_copies(sizes),
        *_other_compression(sizes, "none", "stored-cubins", "stored, not compressed"),
        *_other_compression(sizes, "lz4", "lz4-cubins", "in LZ4, where zstd is smaller"),
        *_unreached_ptx(sizes),
        *_twins(sizes),
        *_experiment_savings(sizes, SMALLER_MODE),
        *_experiment_savings(sizes, NO_DEBUG),
        *_repeated_contents(sizes),
        *_unnamed_kernels(sizes),
        *_large_templates(sizes, rows(sizes, ("template",)) if templates is None else templates),
        *_arm_only_chips(sizes),
    ]
    column = "download" if sizes.downloads else "installed"
    all_reductions.sort(
        key=lambda line: (
            line.letter == "C",
            -(getattr(line, column) or 0),
            -line.installed,
            line.rule,
        )
    )
    return all_reductions


def _whole_leaves(
    rule: str, title: str, letter: str, leaves: list[Leaf], condition: str, how: str
) -> Iterable[Reduction]:
    """Yield the reduction that removes these leaves completely, if there are any."""
    if leaves:
        installed = sum(leaf.installed for leaf in leaves)
        yield Reduction(
            rule,
            title,
            letter,
            installed=installed,
            download=_sum_downloads(leaves),
            entries=len(leaves),
            condition=condition,
            how=how,
            estimated=False,
            leaves=leaves,
        )


def _sum_downloads(leaves: list[Leaf]) -> int | None:
    """Return the archive bytes of leaves, or None if none is in an archive."""
    downloads = [leaf.download for leaf in leaves if leaf.download is not None]
    return sum(downloads) if downloads else None


def _linked_copies(sizes: Sizes) -> Iterable[Reduction]:
    """Relocatable cubins whose kernels are all in linked code for the same target.

    Their device functions may be missing in linked code, since linkers drop unused ones. This only
    concerns libraries and programs that register linked code themselves: in other files, objects
    and archives, the relocatable cubins are linked later.
    """
    if all(leaf.kind != RELOCATABLE for leaf in sizes.leaves):
        return ()
    functions, kernels = functions_by_entry(sizes)
    linked: dict[tuple[int, str], set[int]] = {}
    for leaf in sizes.leaves:
        if leaf.kind == CUBIN and leaf.number != NO_NUMBER:
            linked.setdefault((leaf.file, leaf.target), set()).update(functions[leaf.number])
    leaves = [
        leaf
        for leaf in sizes.leaves
        if leaf.kind == RELOCATABLE
        and leaf.section == "__nv_relfatbin"
        and sizes.files[leaf.file].elf_type in LOADED
        and not sizes.files[leaf.file].is_open
        and (leaf.file, leaf.target) in linked
        and (kernels[leaf.number] or functions[leaf.number]) <= linked[leaf.file, leaf.target]
    ]
    return _whole_leaves(
        "linked-copies",
        "relocatable code that is linked",
        "B",
        leaves,
        "one run on a GPU of each target",
        "link objects without it; keep their PTX",
    )


def functions_by_entry(sizes: Sizes) -> tuple[list[set[int]], list[set[int]]]:
    """Return the functions with code of each entry, and those of them with parameters: its kernels.

    Both lists are indexed by the number of the entry in the ledger.
    """
    with_code: list[set[int]] = [set() for _ in range(sizes.entry_count)]
    with_constants: list[set[int]] = [set() for _ in range(sizes.entry_count)]
    entry_groups = array("i", [-1]) * sizes.entry_count
    for leaf in sizes.leaves:
        if leaf.number != NO_NUMBER and leaf.kind in (CUBIN, RELOCATABLE):
            entry_groups[leaf.number] = leaf.number
    function_groups = array("i", range(len(sizes.ledger.functions()))).tobytes()
    for row in sizes.ledger.sums(entry_groups.tobytes(), function_groups, by_part=True):
        if row.function_group and PARTS[row.part] == "code":
            with_code[row.entry_group].add(row.function_group)
        elif row.function_group and PARTS[row.part] == "constants":
            with_constants[row.entry_group].add(row.function_group)
    both = zip(with_code, with_constants, strict=True)
    return with_code, [code & constants for code, constants in both]


def _other_compression(sizes: Sizes, codec: str, rule: str, mode_name: str) -> Iterable[Reduction]:
    """Yield the saving of cubins of one codec that get smaller as zstd.

    `mode_name` is what the title says of the cubins.
    """
    leaves = [
        leaf
        for leaf in sizes.leaves
        if leaf.codec == codec
        and leaf.kind in (CUBIN, RELOCATABLE)
        and leaf.as_zstd is not None
        and leaf.as_zstd < leaf.installed - leaf.header
    ]
    if not leaves:
        return
    installed = sum(leaf.installed - leaf.header - (leaf.as_zstd or 0) for leaf in leaves)
    download = None
    if sizes.downloads:
        download = sum(
            leaf.download - leaf.header_download - leaf.as_zstd_download
            for leaf in leaves
            if leaf.download is not None
        )
    yield Reduction(
        rule,
        f"{_count_text(leaves, 'cubin')} {mode_name}",
        "B",
        installed=installed,
        download=download,
        entries=len(leaves),
        condition="driver of CUDA 12.4 or later",
        how="-Xfatbin -compress-all -compress-mode=default",
        leaves=leaves,
    )


def _unreached_ptx(sizes: Sizes) -> Iterable[Reduction]:
    """PTX for which every GPU from its target up to that of the next PTX has a fitting cubin."""
    containers: dict[tuple[int, str, int], list[Leaf]] = {}
    for leaf in sizes.leaves:
        if leaf.container >= 0 and leaf.kind in (PTX, CUBIN):
            key = leaf.file, leaf.section, leaf.container
            containers.setdefault(key, []).append(leaf)
    leaves = []
    for entries in containers.values():
        is_arm = sizes.files[entries[0].file].is_arm
        cubin_numbers = {number for leaf in entries if (number := plain_number(leaf, CUBIN))}
        ptx_numbers = sorted({number for leaf in entries if (number := plain_number(leaf, PTX))})
        unreached = {
            first
            for first, following in pairwise(ptx_numbers)
            if all(
                is_covered(gpu, cubin_numbers, is_arm=is_arm)
                for gpu in {first, *CAPABILITIES}
                if first <= gpu < following
            )
        }
        leaves += [leaf for leaf in entries if plain_number(leaf, PTX) in unreached]
    return _whole_leaves(
        "unreached-ptx",
        f"{len(leaves)} PTX beside code for each GPU",
        "A",
        leaves,
        "CUDA_FORCE_PTX_JIT=1 is not set",
        "-gencode with code=sm_N only",
    )


def plain_number(leaf: Leaf, kind: str) -> int:
    """Return 90 for a leaf of `kind` with the target `sm_90`; 0 for other kinds, and suffixes."""
    return _number_of(leaf.target) if leaf.kind == kind else 0


@cache
def _number_of(target: str) -> int:
    number = target.partition("_")[2]
    return int(number) if number.isdigit() else 0


def is_covered(gpu: int, cubins: set[int], *, is_arm: bool) -> bool:
    """Return whether a GPU runs one of the cubins, on an Arm host or another one.

    `gpu` is its capability, such as 90, and `cubins` are the capabilities of the cubins. A GPU runs
    code for its major version and no higher minor version.
    """
    if gpu in cubins:
        return True
    if gpu in TEGRA and is_arm:
        return False
    return any(
        cubin // 10 == gpu // 10 and cubin % 10 <= gpu % 10 and cubin not in TEGRA
        for cubin in cubins
    )


def _twins(sizes: Sizes) -> Iterable[Reduction]:
    """Cubins equal to the cubin that the driver would use without them, in the same container.

    The driver would use the cubin for the highest minor version below. Cubins are equal if only
    their chip differs. If a mark of a workaround also differs, which the driver may need, the title
    says so.
    """
    containers: dict[tuple[int, int], dict[int, list[Leaf]]] = {}
    for leaf in sizes.leaves:
        number = plain_number(leaf, CUBIN)
        if leaf.container >= 0 and number:
            by_target = containers.setdefault((leaf.file, leaf.container), {})
            by_target.setdefault(number, []).append(leaf)
    twins: dict[tuple[int, int, bool], list[Leaf]] = {}
    for (file, _), by_target in containers.items():
        is_arm = sizes.files[file].is_arm
        for number in sorted(by_target, reverse=True):
            chosen_number = _next_choice(number, by_target, is_arm=is_arm)
            if (
                chosen_number is None
                or len(by_target[number]) > 1
                or len(by_target[chosen_number]) > 1
            ):
                continue
            leaf, chosen_leaf = by_target[number][0], by_target[chosen_number][0]
            same, similar = (
                fingerprint == twin
                for fingerprint, twin in zip(
                    leaf.fingerprints, chosen_leaf.fingerprints, strict=True
                )
            )
            if similar and leaf.fingerprints[1]:
                key = number, chosen_number, same
                twins.setdefault(key, []).append(leaf)
    for (number, chosen_number, exact), leaves in sorted(twins.items()):
        exception = "" if exact else ", except for a mark"
        yield from _whole_leaves(
            "twins",
            f"{_count_text(leaves, 'cubin')} of sm_{number} as of sm_{chosen_number}{exception}",
            "B",
            leaves,
            f"one run on a GPU of sm_{number}",
            f"omit code=sm_{number}",
        )


def _next_choice(number: int, others: Iterable[int], *, is_arm: bool) -> int | None:
    """Return the capability whose cubin a GPU of `number` runs without a cubin for itself.

    `others` are the capabilities of all cubins; None if the GPU runs none of them.
    """
    if number in TEGRA:
        return None
    fits = [
        other
        for other in others
        if other < number and other not in TEGRA and is_covered(number, {other}, is_arm=is_arm)
    ]
    return max(fits, default=None)


def _experiment_savings(sizes: Sizes, name: str) -> Iterable[Reduction]:
    """Yield the saving of the experiment `name`, over all entries that get smaller."""
    leaves = [leaf for leaf in sizes.leaves if name in leaf.savings]
    savings = [leaf.savings[name] for leaf in leaves]
    installed = sum(saving.installed for saving in savings)
    if installed <= 0:
        return
    download = sum(saving.download for saving in savings) if sizes.downloads else None
    estimated = not all(saving.exact for saving in savings)
    if name == SMALLER_MODE:
        yield Reduction(
            name,
            f"{_count_text(leaves, 'entry')} with the smallest mode",
            "B",
            installed=installed,
            download=download,
            entries=len(leaves),
            condition="driver of CUDA 12.4 or later, start-up measured",
            how="-Xfatbin -compress-all -compress-mode=size",
            leaves=leaves,
        )
        return
    yield Reduction(
        name,
        f"debug data of {_count_text(leaves, 'cubin')}",
        "A",
        installed=installed,
        download=download,
        entries=len(leaves),
        condition="debuggers and profilers show no lines",
        how="compile without -lineinfo, -G",
        estimated=estimated,
        leaves=leaves,
    )


def _repeated_contents(sizes: Sizes) -> Iterable[Reduction]:
    """Functions and data that linked cubins of one file and target contain more than once.

    The real savings depend on the sources, so the figure is the part of the entries' bytes that all
    copies but the first have.
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


def _unnamed_kernels(sizes: Sizes) -> Iterable[Reduction]:
    """Kernels in linked code of files whose host code does not have their names.

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
            f"{len(kernels)} kernel{'s' * (len(kernels) > 1)} that host code does not name",
            "C",
            installed=installed,
            download=download if sizes.downloads else None,
            entries=len(leaves),
            condition="no program loads them by itself",
            how="omit kernels that nothing launches",
            estimated=True,
            leaves=leaves,
        )


def _large_templates(sizes: Sizes, templates: list[Row]) -> Iterable[Reduction]:
    """Yield the largest templates with many instances; only the sources can change this."""
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


def _arm_only_chips(sizes: Sizes) -> Iterable[Reduction]:
    """Code for chips that, as far as is known, only have Arm hosts."""
    tegra_targets = {f"sm_{number}" for number in TEGRA}
    leaves = [
        leaf
        for leaf in sizes.leaves
        if sizes.files[leaf.file].is_x86
        and leaf.kind in (CUBIN, RELOCATABLE)
        and leaf.target.rstrip("af") in tegra_targets
    ]
    chips = sorted({leaf.target for leaf in leaves})
    yield from _whole_leaves(
        "other-hosts",
        f"{_count_text(leaves, 'cubin')} for {', '.join(chips)} in x86-64 files",
        "C",
        leaves,
        "these chips have Arm hosts only",
        "omit their code=sm_N",
    )


def _count_text(leaves: list[Leaf], noun: str) -> str:
    """Return the number of leaves with the noun in singular or plural."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{len(leaves)} {noun if len(leaves) == 1 else plural}"
