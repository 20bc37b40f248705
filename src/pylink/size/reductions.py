"""Rules that find removable bytes in the measured files, and the bytes that each rule saves.

A reduction of class A follows from the bytes and NVIDIA's documents. One of class B also needs a
run on a GPU or a recent driver, as its condition says. One of class C changes the sources
(`sourcerules.py`). Each rule is applied by itself, so savings of several do not add up.
"""

from __future__ import annotations

from array import array
from itertools import pairwise

from pylink.facts.fatbinentries import RELOCATABLE_SECTION
from pylink.size.chips import CAPABILITIES, is_covered, next_choice, plain_number
from pylink.size.levels import rows
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
    Reduction,
    Sizes,
    remove_leaves,
)
from pylink.size.sourcerules import (
    arm_only_chips,
    large_templates,
    repeated_contents,
    unnamed_kernels,
)
from pylink.terminal.numbers import count_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.size.levels import Row

# PRUNABLE are the rules that `pylink prune` applies. It compresses the entries of a rule in
# COMPRESSION, and drops the entries of the others.
COMPRESSION = frozenset({"stored-cubins", "lz4-cubins"})
PRUNABLE = ("unreached-ptx", "linked-copies", "twins", "stored-cubins", "lz4-cubins")


def reductions(sizes: Sizes, templates: list[Row] | None = None) -> list[Reduction]:
    """Return all reductions, largest first; class C, which only people can decide, comes last.

    `templates` are the rows of the level "template", for callers that have them already.
    """
    all_reductions = [
        *_linked_copies(sizes),
        *_other_compression(sizes, "none", "stored-cubins", "stored, not compressed"),
        *_other_compression(sizes, "lz4", "lz4-cubins", "in LZ4, where zstd is smaller"),
        *_unreached_ptx(sizes),
        *_replaceable_cubins(sizes),
        *_experiment_savings(sizes, SMALLER_MODE),
        *_experiment_savings(sizes, NO_DEBUG),
        *repeated_contents(sizes),
        *unnamed_kernels(sizes),
        *large_templates(sizes, rows(sizes, ("template",)) if templates is None else templates),
        *arm_only_chips(sizes),
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


def _linked_copies(sizes: Sizes) -> Iterable[Reduction]:
    """Return a reduction: relocatable cubins whose kernels are all linked for the same target.

    A cubin without kernels counts if all of its functions are linked. With kernels, its device
    functions may be missing in linked code, since linkers drop unused ones. This only concerns
    libraries and programs that register linked code themselves: in all other files, such as objects
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
        and leaf.section == RELOCATABLE_SECTION
        and sizes.files[leaf.file].elf_type in LOADED
        and not sizes.files[leaf.file].is_open
        and (leaf.file, leaf.target) in linked
        and (kernels[leaf.number] or functions[leaf.number]) <= linked[leaf.file, leaf.target]
    ]
    return remove_leaves(
        "linked-copies",
        "relocatable code that is linked",
        "B",
        leaves,
        "one run on a GPU of each target",
        "link objects without it; keep their PTX",
    )


def functions_by_entry(sizes: Sizes) -> tuple[list[set[int]], list[set[int]]]:
    """Return the functions with code of each entry, and those of them with constants: its kernels.

    A kernel's parameters count as constants. Both lists are indexed by the number of the entry in
    the ledger.
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


def _other_compression(
    sizes: Sizes, codec: str, rule: str, description: str
) -> Iterable[Reduction]:
    """Yield what compressing the cubins of one codec as zstd saves, where that makes them smaller.

    `rule` is the name of the reduction. `description` follows the number of cubins in its title, as
    in "7 cubins stored, not compressed".
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
        f"{count_text(len(leaves), 'cubin')} {description}",
        "B",
        installed=installed,
        download=download,
        entries=len(leaves),
        condition="driver of CUDA 12.4 or later",
        how="-Xfatbin -compress-all -compress-mode=default",
        leaves=leaves,
    )


def _unreached_ptx(sizes: Sizes) -> Iterable[Reduction]:
    """Return a reduction: PTX that no known GPU needs, since a cubin beside it fits.

    That must hold for the PTX's target and each GPU from there to below the target of the
    container's next PTX. The last PTX of a container is kept.
    """
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
    return remove_leaves(
        "unreached-ptx",
        f"{len(leaves)} PTX beside code for each GPU",
        "A",
        leaves,
        "CUDA_FORCE_PTX_JIT=1 is not set",
        "-gencode with code=sm_N only",
    )


def _replaceable_cubins(sizes: Sizes) -> Iterable[Reduction]:
    """Yield, by target, cubins equal to the one that the driver would use without them.

    That is the cubin in the same container for the next lower minor version. Cubins are equal if
    only their chip differs. If a mark of a workaround also differs, which the driver may need, the
    title says so.
    """
    containers: dict[tuple[int, int], dict[int, list[Leaf]]] = {}
    for leaf in sizes.leaves:
        number = plain_number(leaf, CUBIN)
        if leaf.container >= 0 and number:
            by_target = containers.setdefault((leaf.file, leaf.container), {})
            by_target.setdefault(number, []).append(leaf)
    replaceable: dict[tuple[int, int, bool], list[Leaf]] = {}
    for (file, _), by_target in containers.items():
        is_arm = sizes.files[file].is_arm
        for number in sorted(by_target, reverse=True):
            chosen_number = next_choice(number, by_target, is_arm=is_arm)
            if (
                chosen_number is None
                or len(by_target[number]) > 1
                or len(by_target[chosen_number]) > 1
            ):
                continue
            leaf, chosen_leaf = by_target[number][0], by_target[chosen_number][0]
            same, similar = (
                fingerprint == chosen
                for fingerprint, chosen in zip(
                    leaf.fingerprints, chosen_leaf.fingerprints, strict=True
                )
            )
            if similar and leaf.fingerprints[1]:
                key = number, chosen_number, same
                replaceable.setdefault(key, []).append(leaf)
    for (number, chosen_number, exact), leaves in sorted(replaceable.items()):
        exception = "" if exact else ", except for a mark"
        count = count_text(len(leaves), "cubin")
        yield from remove_leaves(
            "twins",
            f"{count} of sm_{number} as of sm_{chosen_number}{exception}",
            "B",
            leaves,
            f"one run on a GPU of sm_{number}",
            f"omit code=sm_{number}",
        )


def _experiment_savings(sizes: Sizes, name: str) -> Iterable[Reduction]:
    """Yield the saving of the experiment `name`, over all entries for which it has a result."""
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
            f"{count_text(len(leaves), 'entry')} with the smallest mode",
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
        f"debug data of {count_text(len(leaves), 'cubin')}",
        "A",
        installed=installed,
        download=download,
        entries=len(leaves),
        condition="debuggers and profilers show no lines",
        how="compile without -lineinfo, -G",
        estimated=estimated,
        leaves=leaves,
    )
