"""Plans which entries to drop: other targets, copies of linked code, and those that rules name.

A `Leaf` of `pylink.size` is a range of a file that is one thing, such as one entry.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pylink.facts.fatbinentries import REGISTER_PREFIX, RELOCATABLE_SECTION
from pylink.files.reading import MAX_SIZE, read_incoming
from pylink.inputs.archiveformat import THIN_MAGIC
from pylink.prune.archives import read_members
from pylink.prune.entries import ZSTANDARD_MODES, Changes
from pylink.prune.errors import NotPruned
from pylink.prune.hostelf import HostElf
from pylink.prune.rewriting import is_archive, is_finished, is_host
from pylink.size.model import (
    CUBIN,
    DEVICE_KINDS,
    LTOIR,
    RELOCATABLE,
    UNREADABLE,
    Leaf,
    Reduction,
    Sizes,
)
from pylink.size.reductions import COMPRESSION, PRUNABLE, functions_by_entry, reductions
from pylink.size.sources import ZIP_MAGICS
from pylink.size.walk import measure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Names of the symbols that register a unit (device code of one source file) begin with this. The
# unit's id follows REGISTER_PREFIX, and begins with an underscore.
REGISTRATION_PREFIX = REGISTER_PREFIX + b"_"


@dataclass
class PruneRequest:
    """The options of one `pylink prune`; empty ones were not given."""

    targets: tuple[str, ...] = ()  # of --arch; empty for all
    linked: str = ""  # the path of a finished device link
    mode: str = ""  # of --compress-mode
    rules: tuple[str, ...] = ()  # of --drop
    experimental: bool = False


@dataclass
class PrunePlan:
    """The changes to one file, what `pylink.size` measured before them, and notes for the user."""

    changes: Changes
    sizes: Sizes
    notes: list[str] = field(default_factory=list)


def _target_name(leaf: Leaf) -> str:
    """Return the target of an entry as in nvcc's `code=`, such as `sm_90` or `lto_90`."""
    return leaf.target.replace("compute_", "lto_", 1) if leaf.kind == LTOIR else leaf.target


def make_plan(path: str, data: bytes, request: PruneRequest) -> PrunePlan:
    """Plan the changes of a file; NotPruned if it is unreadable or the request does not apply."""
    if data.startswith(ZIP_MAGICS):
        advice = "unpack it, prune the files in it and pack them again"
        raise NotPruned(f"{path}: wheels and other zip files are not pruned; {advice}")
    if data.startswith(THIN_MAGIC):
        raise NotPruned(f"{path}: a thin archive contains no code; prune its members")
    is_linked = is_finished(data)
    if is_linked and not request.experimental:
        raise NotPruned(f"{path}: it is linked by the host linker already; see --experimental")
    if is_linked and request.linked:
        raise NotPruned(f"{path}: --linked is for objects and archives; use --drop linked-copies")
    sizes = measure([path], recompress=bool(COMPRESSION.intersection(request.rules)))
    if sizes.unreadable:
        name, reason = sizes.unreadable[0]
        raise NotPruned(f"{name}: {reason}")
    # The readable entries of containers.
    leaves = [leaf for leaf in sizes.leaves if leaf.kind not in ("host", "container header")]
    leaves = [leaf for leaf in leaves if leaf.container >= 0 and leaf.kind != UNREADABLE]
    plan = PrunePlan(Changes(frozenset()), sizes)
    dropped: set[tuple[int, int]] = set()
    modes: dict[tuple[int, int], str] = {}
    if request.targets:
        unwanted = _find_other_targets(path, leaves, request.targets)
        dropped |= {_key(leaf) for leaf in unwanted}
    if request.linked:
        copies = _find_linked_copies(path, data, sizes, request.linked, plan)
        dropped |= {_key(leaf) for leaf in copies}
    # Rules see only the remaining entries: which cubin a GPU runs depends on what others there are.
    remaining = [leaf for leaf in sizes.leaves if _key(leaf) not in dropped]
    for line in _selected_reductions(sizes.with_leaves(remaining), request.rules, plan):
        if line.rule in COMPRESSION:
            modes |= {_key(leaf): "default" for leaf in line.leaves}
        else:
            dropped |= {_key(leaf) for leaf in line.leaves}
    _note_empty_containers(leaves, dropped, plan)
    entry_bytes = {_key(leaf): leaf.installed for leaf in leaves}
    plan.changes = Changes(frozenset(dropped), request.mode, modes, entry_bytes)
    if request.mode in ZSTANDARD_MODES or modes:
        plan.notes.append("Zstandard needs a driver, and to be linked a toolkit, of CUDA 12.4")
    return plan


def _key(leaf: Leaf) -> tuple[int, int]:
    """Return the key of an entry in `Changes`: the number of its container, and its own there."""
    return leaf.container, leaf.index


def _find_other_targets(path: str, leaves: list[Leaf], targets: tuple[str, ...]) -> list[Leaf]:
    """Return the entries that are for none of `targets`.

    NotPruned if the file has no entry for one of the targets.
    """
    file_targets = sorted({_target_name(leaf) for leaf in leaves})
    for target in targets:
        if target not in file_targets:
            names = ", ".join(file_targets) or "nothing"
            raise NotPruned(f"{path}: it has no code for {target}; its targets are {names}")
    return [leaf for leaf in leaves if _target_name(leaf) not in targets]


def _note_empty_containers(
    leaves: list[Leaf], dropped: set[tuple[int, int]], plan: PrunePlan
) -> None:
    """Add a note for each container that loses all entries: its kernels cannot run any more.

    A container that had only relocatable cubins needs no note: a program runs the code of a
    finished link.
    """
    by_container: dict[int, list[Leaf]] = {}
    for leaf in leaves:
        by_container.setdefault(leaf.container, []).append(leaf)
    for number, container_leaves in by_container.items():
        is_emptied = all(_key(leaf) in dropped for leaf in container_leaves)
        if is_emptied and not all(leaf.kind == RELOCATABLE for leaf in container_leaves):
            label = container_leaves[0].unit or f"container {number}"
            names = ", ".join(sorted({_target_name(leaf) for leaf in container_leaves}))
            plan.notes.append(f"nothing stays of {label}, which has code for {names} alone")


def _selected_reductions(
    sizes: Sizes, rules: tuple[str, ...], plan: PrunePlan
) -> Iterator[Reduction]:
    """Yield the reductions of these rules, and note the condition of each in `plan`.

    NotPruned for a rule that is not in PRUNABLE.
    """
    all_lines = reductions(sizes)
    for rule in rules:
        if rule not in PRUNABLE:
            raise NotPruned(f"not a rule: '{rule}' ({', '.join(PRUNABLE)})")
        lines = [line for line in all_lines if line.rule == rule]
        if not lines:
            plan.notes.append(f"{rule}: nothing to do")
        for line in lines:
            plan.notes.append(f"{rule}: class {line.letter}, right if: {line.condition}")
            yield line


def _find_linked_copies(
    path: str, data: bytes, sizes: Sizes, linked: str, plan: PrunePlan
) -> list[Leaf]:
    """Return the relocatable cubins of a file that the finished link `linked` contains.

    The link contains a cubin if it registers the units of the cubin's member, and has all kernels
    of the cubin for its target. A cubin without kernels needs all of its functions there. Each
    other cubin in a RELOCATABLE_SECTION stays, which is noted in `plan`.
    """
    registered = _registered_units(linked)
    both_sizes = measure([linked, path])  # the finished link is file 0
    if both_sizes.unreadable:
        raise NotPruned(f"{both_sizes.unreadable[0][0]}: {both_sizes.unreadable[0][1]}")
    functions, kernels = functions_by_entry(both_sizes)
    linked_functions: dict[str, set[int]] = {}  # by target: numbers of functions in the link
    for leaf in both_sizes.leaves:
        if leaf.file == 0 and leaf.kind == CUBIN:
            linked_functions.setdefault(leaf.target, set()).update(functions[leaf.number])
    if not linked_functions:
        raise NotPruned(f"{linked}: it has no linked device code")
    unregistered = _units_without_registration(path, data, registered)
    copies = []
    for leaf in both_sizes.leaves:
        if leaf.file == 0 or leaf.kind != RELOCATABLE or leaf.section != RELOCATABLE_SECTION:
            continue
        needed = kernels[leaf.number] or functions[leaf.number]
        label = f"{_target_name(leaf)} of {leaf.unit}"
        member = leaf.unit if is_archive(data) else ""
        if member in unregistered:
            plan.notes.append(f"{label} stays: {linked} does not register {unregistered[member]}")
        elif leaf.target not in linked_functions:
            plan.notes.append(f"{label} stays: {linked} has no code for it")
        elif not needed <= linked_functions[leaf.target]:
            plan.notes.append(f"{label} stays: {linked} does not contain all of its kernels")
        else:
            copies.append(leaf)
    if not any(leaf.kind in DEVICE_KINDS for leaf in sizes.leaves):
        plan.notes.append("there is no device code")
    return copies


def _registered_units(linked: str) -> set[bytes]:
    """Return the names of the symbols with which a finished link registers units."""
    data = read_incoming(linked, limit=MAX_SIZE)
    if not is_host(data):
        raise NotPruned(f"{linked}: it is not the object, library or program of a device link")
    functions = HostElf(data, linked).symbol_names(REGISTRATION_PREFIX, defined=True)
    if not functions:
        raise NotPruned(f"{linked}: it registers no unit, or its symbols were stripped")
    return functions


def _units_without_registration(path: str, data: bytes, registered: set[bytes]) -> dict[str, str]:
    """Return the members with a unit (source file) that the finished link does not register.

    By name of a member, the result has the symbol that would register the unit, or other words for
    a message. An object that is not an archive has the name "". A member that is not a host object
    or calls no registration is in the result, too: nothing shows that its units are in the link.
    """
    objects = {"": data}
    if is_archive(data):
        objects = {}
        for name, _, offset, size in read_members(data, path):
            contents = data[offset : offset + size]
            # A name must say which member is meant; equal members may share one.
            if name in objects and objects[name] != contents:
                raise NotPruned(f"{path}: several members have the name '{name}'")
            objects[name] = contents
    units = {}
    for name, contents in objects.items():
        if not is_host(contents):
            units[name] = "it, since it is not a host object"
            continue
        called = HostElf(contents, name or path).symbol_names(REGISTRATION_PREFIX, defined=False)
        missing = sorted(called - registered)
        if missing or not called:
            unit = missing[0].decode("utf-8", "replace") if missing else "any unit of it"
            units[name] = unit
    return units
