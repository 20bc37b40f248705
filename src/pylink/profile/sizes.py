"""Sizes of the work of each phase and step of a link, from the finished tables."""

from __future__ import annotations

from pylink.profile.counts import column
from pylink.rowformats import KIND_COUNT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.profile.model import Profile
    from pylink.profile.results import PhaseResults


# Indices of two columns of FILE_COUNT rows (a row for each file), and of one of KIND_COUNT rows (a
# row for each kind of section).
RELOCATIONS, DEBUG_BYTES = 6, 7
COPIED_BYTES = 7


def fill_sizes(profile: Profile, sums: Sequence[int], results: PhaseResults) -> None:
    """Set the work sizes of phases and steps; `sums` has the sum of each FILE_COUNT column."""
    sizes = _step_sizes(profile, sums, results)
    input_size = (profile.input_bytes, "bytes")
    for phase in profile.phases:
        for step in phase.steps:
            step.size, step.unit = sizes.get(step.name, input_size)
        phase.size = profile.input_bytes
    _fill_phases(profile, sums, results)


def _step_sizes(
    profile: Profile, sums: Sequence[int], results: PhaseResults
) -> dict[str, tuple[int, str]]:
    """Map names of steps to the number of items that they work on, and the unit.

    Steps that are not in the result work on the bytes of the inputs.
    """
    merged, placed = results.placed.merged, results.placed
    objects = merged.objects
    files = (len(objects.names), "files")
    opened = (profile.opened_bytes, "bytes")
    read = (profile.input_bytes, "bytes")
    sections = (len(objects.sections), "sections")
    symbols = (len(objects.symbols), "symbols")
    entities = (len(merged.entities), "symbols")
    calls = (len(merged.calls), "calls")
    outs = (len(placed.outs), "sections")
    fixups = (len(merged.fixups), "relocations")
    emitted = (profile.relocations_kept, "relocations")
    folding = profile.folding
    return {
        "measure": (profile.opened, "files"),
        "read_files": opened,
        "classify": opened,
        "unpack": opened,
        "parse": read,
        "check_targets": files,
        "rewrite_kernels": read,
        "resolve": symbols,
        "find_live": calls,
        "analyze_functions": calls,
        "find_undefined": entities,
        "place_pools": calls,
        "find_ties": sections,
        "fold_mercury": (0 if folding is None else folding.stats.pairs, "pairs"),
        "merge_sections": sections,
        "adopt_relocations": emitted,
        "record_resolved": fixups,
        "rebuild_debug": (sums[DEBUG_BYTES], "bytes"),
        "assign_values": entities,
        "apply_pools": entities,
        "place_shared": entities,
        "fold_constants": sections,
        "order": outs,
        "make_contents": entities,
        "place": outs,
        "resolve_values": fixups,
        "write_contents": (profile.output_bytes, "bytes"),
        "write_tables": (len(placed.symbol_order), "symbols"),
    }


def _fill_phases(profile: Profile, sums: Sequence[int], results: PhaseResults) -> None:
    """Set the amounts that each phase handled; `sums` has the sum of each FILE_COUNT column."""
    objects, placed = results.placed.merged.objects, results.placed
    sections = len(placed.section_order)
    symbols = len(placed.symbol_order)
    for phase in profile.phases:
        tag = phase.tag
        if tag in ("read", "merge"):
            phase.sections = len(objects.sections)
            phase.symbols = len(objects.symbols)
            phase.relocations = sums[RELOCATIONS]
        elif tag in ("layout", "finalize"):
            phase.sections = sections
            phase.symbols = symbols
        elif tag == "relocate":
            phase.sections = sections
            phase.relocations_applied = profile.relocations_applied
            phase.relocations_kept = profile.relocations_kept
            phase.relocations = phase.relocations_applied + phase.relocations_kept
            phase.bytes_copied = sum(column(profile.kind_counts, KIND_COUNT.size, COPIED_BYTES))
            phase.size = profile.output_bytes
        elif tag == "write":
            phase.sections = sections
            phase.size = profile.output_bytes
            phase.bytes_written = profile.output_bytes if profile.output is not None else 0
        if tag == "read":
            inputs = objects.job.inputs
            provided_bytes = sum(len(source.data) for source in inputs if source.data is not None)
            phase.bytes_copied = provided_bytes
            phase.bytes_read = profile.opened_bytes - provided_bytes
        if tag == "merge" and profile.folding is not None:
            phase.bytes_compared = profile.folding.stats.bytes_compared
            phase.bytes_hashed = profile.folding.stats.digest_bytes
