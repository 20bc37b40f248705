"""Phase layout: values of symbols, order of sections and symbols, sizes and file offsets."""

from __future__ import annotations

from pylink._native import callgraph, info, notes, poolfill, resolve
from pylink._native import layout as native_layout
from pylink._native.tables import Spans
from pylink.facts import inheritance, sectionkinds
from pylink.facts.releases import TRAIT_LEAN_NAMES, TRAIT_MERC_CALLS, TRAIT_WHOLE_BANK
from pylink.facts.target import CONSTANT_BANK, CONSTANT_LIMIT, FAMILY_B, FAMILY_C, SYSTEM_SHARED
from pylink.phases.notes import REL_ACTION, compat_note, cuinfo_note, tkinfo_note, warn_lowered
from pylink.phases.results import Placed
from pylink.phases.shared import place_shared
from pylink.tables import entity_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink._native.tables import Blob
    from pylink.diagnostics import Diagnostic, Sink
    from pylink.phases.results import Merged


def layout(sink: Sink, merged: Merged) -> Placed:
    """Fix every address, index and size."""
    objects = merged.objects
    job = objects.job
    placed = Placed(merged)
    native_layout.assign_values(placed)
    steps = job.steps
    steps.end_step("assign_values")
    for contents, data in merged.replacements:
        placed.add(contents, data)
    if merged.pools:
        if not _merge_pools(placed):
            poolfill.apply_pools(placed)
        steps.end_step("apply_pools")
    oversized = place_shared(placed)
    steps.end_step("place_shared")
    size = native_layout.file_bank_size(placed.outs, CONSTANT_BANK)
    if oversized or size > CONSTANT_LIMIT:
        from pylink.phases.report_memory import report_variables

        report_variables(placed, oversized, sink)
    large = native_layout.find_large_pools(placed.outs, CONSTANT_LIMIT)
    if large:
        from pylink.phases.report_memory import report_pools

        report_pools(placed, large, CONSTANT_LIMIT, sink)
    if merged.undefined:
        from pylink.phases.report_symbols import report_undefined

        report_undefined(merged, sink)
    if job.dumps_calls:
        from pylink.phases.report_calls import report_graph

        report_graph(merged, sink)
    if job.options.preserve_relocs and job.executable:
        _check_deleted(placed, sink)
    selects = job.folds_constants or objects.references is not None
    if selects and not objects.traits & TRAIT_WHOLE_BANK:
        _fold_constants(placed)
        steps.end_step("fold_constants")
    # Sections and symbols get their numbers in the file.
    native_layout.order(placed, has_file_records=info.has_file_records(merged))
    steps.end_step("order")
    _make_contents(placed, sink)
    steps.end_step("make_contents")
    if merged.exceeds_registers or job.dumps_calls:
        from pylink.phases.report_calls import report_registers

        report_registers(merged, sink, dump=job.dumps_calls)
    native_layout.place(placed)
    steps.end_step("place")
    if not sink.errors:  # these messages are about the output, so only if there is one
        warn_lowered(objects, sink)
        _report_unselected(merged, sink)
    return placed.seal()


def _report_unselected(merged: Merged, sink: Sink) -> None:
    """Report kernels that were removed since no host code names them.

    Only without --register-link-binaries: the output may then be for a program that loads it by
    itself, and launches kernels by names.
    """
    objects = merged.objects
    if objects.references is None or objects.job.options.register_link_binaries is not None:
        return
    removed = resolve.find_unselected(merged)
    if removed and sink.is_enabled("kernels-removed"):
        from pylink.phases.report_removed import report_removed

        report_removed(merged, removed, sink)


def _merge_pools(placed: Placed) -> bool:
    """Merge the kernels' pools of literals into one; False if they stay apart.

    They are merged if a pool is too large for its bank, and one pool for all kernels would fit.
    They always stay apart with -r, and from sm_100 on, where relocations of jump tables name them.
    """
    job = placed.merged.objects.job
    if job.target.family == FAMILY_C or not job.executable:
        return False
    if not poolfill.has_pool_above(placed, CONSTANT_LIMIT):
        return False
    from pylink._native import poolmerge

    return poolmerge.merge_pools(placed, CONSTANT_LIMIT)


def _check_deleted(placed: Placed, sink: Sink) -> None:
    """Refuse, as nvlink does, debug data that refers to an extern array whose symbol is deleted."""
    from pylink._native import resolved  # only --preserve-relocs needs it

    merged = placed.merged
    job = merged.objects.job
    family = job.target.family
    reserves = not job.options.disable_smem_reservation
    reserved_bytes = SYSTEM_SHARED if reserves and family == FAMILY_C else 0

    def explain(diagnostic: Diagnostic) -> None:
        from pylink.locate.fields import explain_extern_array

        explain_extern_array(diagnostic, placed)

    # With -g, arrays keep their symbols. On sm_90 they do so if it has the reserve.
    deletes_arrays = not job.debug and (family != FAMILY_B or not reserves)
    if deletes_arrays and resolved.refers_to_deleted_array(placed, reserved_bytes):
        from pylink.phases.report_symbols import report_deleted

        report_deleted(explain, sink)


def _fold_constants(placed: Placed) -> None:
    """Keep only one of equal small pieces of the constant bank; for links that select kernels."""
    from pylink._native import constants

    constants.fold_pieces(placed)


def _make_contents(placed: Placed, sink: Sink) -> None:
    """Make the contents of sections that the link writes itself: attributes, call graph, notes."""
    merged = placed.merged
    objects = merged.objects
    job = objects.job
    closing = objects.release.closing if job.target.family == FAMILY_C else b""
    for kernel in info.emit_info(placed, inheritance.pack_rows(objects.release.toolkit), closing):
        name = entity_name(merged, kernel)
        sink.report("mixed-cta-groups", symbol=name)
    graph, prototypes = callgraph.emit_callgraph(placed)
    traits = objects.release.traits
    if job.target.family == FAMILY_C and traits & TRAIT_LEAN_NAMES:
        graph, prototypes = native_layout.rebuild_strtab(placed, graph, prototypes)
    (first_code,) = native_layout.find_sections(placed.outs, [sectionkinds.TEXT])
    tkinfo = tkinfo_note(job.options, objects.release)
    contents_of: dict[int, bytes | Blob] = {
        sectionkinds.CALLGRAPH: graph,
        sectionkinds.PROTOTYPE: prototypes,
        sectionkinds.TKINFO: notes.join_notes(objects, tkinfo) if job.executable else tkinfo,
        sectionkinds.CUINFO: cuinfo_note(objects),
        sectionkinds.COMPAT: compat_note(merged, has_code=first_code >= 0),
        sectionkinds.REL_ACTION: REL_ACTION,
    }
    if traits & TRAIT_MERC_CALLS and job.target.family == FAMILY_C:
        contents_of[sectionkinds.MERC_CALLGRAPH] = graph
        contents_of[sectionkinds.MERC_PROTOTYPE] = prototypes
    sections = native_layout.find_sections(placed.outs, list(contents_of))
    for section, contents in zip(sections, contents_of.values(), strict=True):
        if section >= 0:
            placed.add(contents, Spans.whole(section, len(contents)))
