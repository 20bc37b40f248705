"""Phase layout: values of symbols, order of sections and symbols, sizes and places in the file."""

from __future__ import annotations

from pylink._native import callgraph, info, notes, poolfill
from pylink._native import layout as native_layout
from pylink.facts import inherited, sectionkinds
from pylink.facts.releases import TRAIT_LEAN_NAMES, TRAIT_MERC_CALLS
from pylink.facts.target import FAMILY_B, FAMILY_C, SYSTEM_SHARED
from pylink.phases.notes import REL_ACTION, compat_note, cuinfo_note, tkinfo_note
from pylink.phases.shared import place_shared
from pylink.tables import entity_name, span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Diagnostic, Sink
    from pylink.phases.merge import Merged

# The bank of file-scope constants, and how many bytes of a bank code can address.
CONSTANT_BANK = 3
CONSTANT_LIMIT = 0x10000


class Placed:
    """Where everything is.

    By entity: `values` (S in relocations), `symbol_values` and `merc_values` (st_value), `homes`
    (its OutRow), `dynamic` (address of extern arrays in a function), `lost`, `symbol_index`,
    `instance_index` (symbol of a kernel's externsharedinstance). By OutRow: `outs`, `places`,
    `section_index`, `section_symbol_index`. In file order: `section_order`, `symbol_order`. `blobs`
    and `spans` hold the contents that the link makes; `table_offset` is the section header table's,
    `null_value` the value of the null symbol. `out_symbols` and the string tables have
    the final names.
    """

    __slots__ = (
        "blobs",
        "dynamic",
        "homes",
        "instance_index",
        "lost",
        "merc_values",
        "merged",
        "null_value",
        "out_symbols",
        "outs",
        "phdrs",
        "places",
        "section_index",
        "section_order",
        "section_symbol_index",
        "shstrtab",
        "size",
        "spans",
        "strtab",
        "symbol_index",
        "symbol_order",
        "symbol_values",
        "table_offset",
        "values",
    )

    def __init__(self, merged: Merged) -> None:
        self.merged = merged
        self.outs = self.values = self.homes = b""
        self.symbol_values = self.merc_values = self.instance_index = b""
        self.dynamic = self.lost = b""
        self.section_order = self.section_index = self.section_symbol_index = b""
        self.symbol_order = self.symbol_index = b""
        self.places = self.phdrs = self.shstrtab = b""
        self.out_symbols, self.strtab = merged.out_symbols, merged.strtab
        self.blobs: list[bytes] = []
        self.spans: list[bytes] = []
        self.size = self.table_offset = self.null_value = 0

    def add(self, contents: bytes, spans: bytes) -> None:
        """Add contents that the link makes, with a SpanRow for each place they go to."""
        self.blobs.append(contents)
        self.spans.append(spans)


def layout(merged: Merged, sink: Sink) -> Placed:
    """Fix every address, index and size."""
    objects = merged.objects
    job = objects.job
    placed = Placed(merged)
    placed.values, placed.homes, placed.outs = native_layout.assign_values(
        objects.sections,
        objects.symbols,
        merged.entities,
        merged.symbol_entity,
        merged.outs,
        merged.out_symbols,
        merged.out_of,
        merged.base,
        job.executable,
    )
    steps = job.steps
    steps.done("assign_values")
    for contents, made in merged.made:
        placed.add(contents, made)
    if merged.pools:
        (
            placed.outs,
            placed.values,
            placed.homes,
            blob,
            spans,
            placed.null_value,
        ) = poolfill.apply_pools(
            objects.arena,
            objects.sections,
            objects.symbols,
            merged.entities,
            merged.pools,
            placed.outs,
            placed.values,
            placed.homes,
        )
        placed.add(blob, spans)
        steps.done("apply_pools")
    place_shared(placed, sink)
    steps.done("place_shared")
    size = native_layout.constant_size(placed.outs, CONSTANT_BANK)
    if size > CONSTANT_LIMIT:
        from pylink.phases.report_memory import report_constants  # noqa: PLC0415 -- an error

        report_constants(placed, size, CONSTANT_LIMIT, sink)
    large = native_layout.find_large_pools(placed.outs, CONSTANT_LIMIT)
    if large:
        from pylink.phases.report_memory import report_pools  # noqa: PLC0415 -- an error

        report_pools(placed, large, CONSTANT_LIMIT, sink)
    if job.options.preserve_relocs and job.executable:
        _check_deleted(placed, sink)
    if job.folds_constants or objects.references is not None:
        _fold_constants(placed, sink)
        steps.done("fold_constants")
    (
        placed.section_order,
        placed.section_index,
        placed.symbol_order,
        placed.symbol_index,
        placed.section_symbol_index,
        placed.instance_index,
    ) = native_layout.order(
        placed.outs,
        merged.out_symbols,
        merged.calls,
        merged.entities,
        job.target.family,
        objects.release.traits,
        info.has_file_records(
            objects.arena,
            objects.files,
            objects.sections,
            merged.entities,
            merged.symbol_entity,
            merged.symbol_role,
            job.executable,
        ),
    )
    steps.done("order")
    named = _make_contents(placed, sink)
    steps.done("make_contents")
    placed.places, placed.shstrtab, placed.phdrs, placed.table_offset, placed.size = (
        native_layout.place(
            objects.arena,
            objects.sections,
            placed.outs,
            placed.section_order,
            placed.section_index,
            placed.spans,
            placed.symbol_order,
            merged.out_symbols,
            merged.shstrtab,
            merged.strtab,
            placed.strtab,
            job.target.family,
            objects.release.traits,
            job.executable,
        )
    )
    placed.outs = named
    steps.done("place")
    return placed


def _check_deleted(placed: Placed, sink: Sink) -> None:
    """Refuse what nvlink refuses: a record of debug data that names no symbol."""
    from pylink._native import resolved  # noqa: PLC0415 -- few links ask for the record

    merged = placed.merged
    family = merged.objects.job.target.family
    reserved = SYSTEM_SHARED if family == FAMILY_C else 0

    def explain(diagnostic: Diagnostic) -> None:
        from pylink.locate.fields import explain_deleted  # noqa: PLC0415 -- when it is looked at

        explain_deleted(diagnostic, placed)

    if family != FAMILY_B and resolved.names_deleted(
        merged.entities, placed.outs, merged.fixes, reserved
    ):
        reason = "Internal error: reference to deleted symbol"
        sink.fatal("internal-error", explain=explain, reason=reason)


def _fold_constants(placed: Placed, sink: Sink) -> None:
    """The constant bank of a link that selects kernels."""
    from pylink._native import constants  # noqa: PLC0415 -- most links keep all kernels

    merged = placed.merged
    objects = merged.objects
    placed.outs, blob, spans, folded = constants.fold_pieces(
        objects.arena, objects.sections, merged.out_of, placed.outs
    )
    placed.null_value = folded or placed.null_value
    placed.add(blob, spans)
    if constants.find_cut_relocation(placed.outs, merged.keeps):

        def explain(diagnostic: Diagnostic) -> None:
            from pylink.locate.fields import explain_cut  # noqa: PLC0415 -- when it is looked at

            explain_cut(diagnostic, placed)

        reason = "Internal error: relocation is past end of offset"
        sink.fatal("internal-error", explain=explain, reason=reason)


def _make_contents(placed: Placed, sink: Sink) -> bytes:
    """The sections whose bytes the link makes: attributes, call graph, notes.

    Returns the OutRow table with the final names of symbols.
    """
    merged = placed.merged
    objects = merged.objects
    job = objects.job
    blob, spans, mixed = info.emit_info(
        objects.arena,
        objects.files,
        objects.sections,
        objects.symbols,
        merged.entities,
        merged.symbol_entity,
        merged.symbol_role,
        merged.calls,
        merged.prototypes,
        merged.functions,
        placed.outs,
        merged.out_of,
        placed.symbol_index,
        placed.section_symbol_index,
        job.target.family,
        job.executable,
        inherited.compiled(),
        objects.release.closing if job.target.family == FAMILY_C else b"",
    )
    for kernel in mixed:
        name = entity_name(objects.arena, objects.symbols, merged.entities, kernel)
        sink.report("mixed-cta-groups", symbol=name)
    placed.add(blob, spans)
    graph, prototypes = callgraph.emit_callgraph(
        merged.calls,
        merged.entities,
        placed.symbol_index,
        merged.prototype_offsets,
        not job.executable,
    )
    outs, traits = placed.outs, objects.release.traits
    if job.target.family == FAMILY_C and traits & TRAIT_LEAN_NAMES:
        outs, placed.out_symbols, placed.strtab, graph, prototypes = native_layout.lean_names(
            outs,
            merged.out_symbols,
            placed.symbol_order,
            merged.strtab,
            graph,
            prototypes,
        )
    earlier = (
        notes.join_sections(objects.arena, objects.sections, sectionkinds.TKINFO)
        if job.executable
        else b""
    )
    made = {
        sectionkinds.CALLGRAPH: graph,
        sectionkinds.PROTOTYPE: prototypes,
        sectionkinds.TKINFO: tkinfo_note(job.options) + earlier,
        sectionkinds.CUINFO: cuinfo_note(objects, sink),
        sectionkinds.COMPAT: compat_note(
            objects,
            merged.out_of,
            has_code=native_layout.find_kind(placed.outs, sectionkinds.TEXT) >= 0,
        ),
        sectionkinds.REL_ACTION: REL_ACTION,
    }
    if traits & TRAIT_MERC_CALLS and job.target.family == FAMILY_C:
        made[sectionkinds.MERC_CALLGRAPH] = graph
        made[sectionkinds.MERC_PROTOTYPE] = prototypes
    for kind, contents in made.items():
        out = native_layout.find_kind(placed.outs, kind)
        if out >= 0:
            placed.add(contents, span(out, len(contents)))
    return outs
