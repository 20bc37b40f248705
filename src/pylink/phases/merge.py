"""Phase merge: symbols resolved, dead code gone, every section and symbol of the output born."""

from __future__ import annotations

from pylink._native import elfread, poolrelocs, pools, resolve
from pylink._native import functions as native_functions
from pylink._native import merge as native_merge
from pylink.diagnostics.stream import to_bytes
from pylink.facts.target import FAMILY_C
from pylink.phases.init import HOST_INFO, KEEP_CODE
from pylink.phases.kernels import rewrite_kernels
from pylink.phases.rebuild import rebuild_debug

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.phases.read import Objects


class Merged:
    """What the output consists of. Tables are packed rows of the names in rows.pxd.

    Of the link: `entities` (EntityRow), `symbol_entity` and `symbol_role` by input symbol,
    `calls`, `prototypes` (arena offsets), `functions` (FunctionRow by entity), `pools`. Of the
    output: `outs` (OutRow), `out_symbols`, `keeps`, `fixes`, `rebuilds`, `out_of` and `base` by
    input section, `shstrtab`, `strtab`, `prototype_offsets`, `referenced` and `uses_array` by
    entity; `made` has contents that replace those of the inputs, as pairs of bytes and SpanRow.
    `stand_ins` has the section that stands for each input section; empty when none does.
    """

    __slots__ = (
        "base",
        "calls",
        "entities",
        "fixes",
        "functions",
        "keeps",
        "made",
        "objects",
        "out_of",
        "out_symbols",
        "outs",
        "pools",
        "prototype_offsets",
        "prototypes",
        "rebuilds",
        "referenced",
        "shstrtab",
        "stand_ins",
        "strtab",
        "symbol_entity",
        "symbol_role",
        "uses_array",
    )

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.entities = self.symbol_entity = self.symbol_role = b""
        self.calls = self.prototypes = self.functions = self.pools = b""
        self.outs = self.out_symbols = self.keeps = self.fixes = self.rebuilds = b""
        self.out_of = self.base = self.shstrtab = self.strtab = b""
        self.prototype_offsets = self.referenced = self.uses_array = b""
        self.stand_ins = b""
        self.made: list[tuple[bytes, bytes]] = []


def merge(objects: Objects, sink: Sink) -> Merged | None:
    """Resolve symbols, drop dead code and sort the relocations.

    None after errors, unless what follows is to be reported nevertheless.
    """
    job = objects.job
    steps = job.steps
    if job.target.family == FAMILY_C:
        objects = rewrite_kernels(objects, sink)
        if sink.errors:
            return None
        steps.done("rewrite_kernels")
    merged = Merged(objects)
    entities, merged.symbol_entity, merged.symbol_role, merged.calls, merged.prototypes, clashes = (
        resolve.resolve(objects.arena, objects.files, objects.sections, objects.symbols)
    )
    if clashes:
        from pylink.phases.report_symbols import report_clashes  # noqa: PLC0415 -- errors

        report_clashes(objects, clashes, sink)
    steps.done("resolve")
    objects.sections = pools.cut_pools(objects.sections, objects.symbols, merged.symbol_role)
    merged.entities = resolve.find_live(
        entities,
        merged.calls,
        merged.prototypes,
        _selected_kernels(objects, entities),
        bool(job.mode & KEEP_CODE),
    )
    steps.done("find_live")
    merged.functions = native_functions.analyze(
        objects.arena,
        objects.sections,
        merged.entities,
        merged.symbol_entity,
        merged.symbol_role,
        merged.calls,
        merged.prototypes,
    )
    steps.done("analyze_functions")
    crowded = False
    if job.executable:
        crowded = _report_recursion(merged, sink)
        _report_undefined(merged, sink)
    steps.done("find_undefined")
    if sink.errors and not (crowded or job.dumps_calls or job.options.verbose):
        return None
    merged.pools = pools.place_pools(
        objects.sections,
        objects.symbols,
        merged.entities,
        merged.symbol_entity,
        merged.symbol_role,
        merged.calls,
        merged.prototypes,
        not job.executable,
    )
    steps.done("place_pools")
    if job.folds_mercury:
        merged.stand_ins = _fold_mercury(objects, merged, sink)
    if job.traces_folds:
        from pylink.phases.trace import trace_inputs  # noqa: PLC0415 -- few links are traced

        trace_inputs(objects, merged.stand_ins)
    (
        merged.outs,
        merged.out_symbols,
        merged.keeps,
        merged.fixes,
        merged.rebuilds,
        merged.out_of,
        merged.base,
        merged.shstrtab,
        merged.strtab,
        merged.prototype_offsets,
        merged.referenced,
        merged.uses_array,
    ) = native_merge.merge(
        objects.arena,
        objects.files,
        objects.sections,
        objects.symbols,
        merged.entities,
        merged.symbol_entity,
        merged.symbol_role,
        merged.prototypes,
        merged.pools,
        merged.stand_ins,
        job.target.family,
        job.mode | (HOST_INFO if objects.references is not None else 0),
        objects.release.traits,
    )
    steps.done("merge_sections")
    if job.target.family == FAMILY_C and merged.pools:
        merged.outs, merged.keeps = poolrelocs.adopt_relocations(
            objects.arena,
            objects.files,
            objects.sections,
            objects.symbols,
            merged.entities,
            merged.symbol_entity,
            merged.pools,
            merged.outs,
            merged.keeps,
        )
        steps.done("adopt_relocations")
    if job.options.preserve_relocs:
        _record_resolved(merged)
        steps.done("record_resolved")
    if crowded or job.dumps_calls:
        from pylink.phases.report_calls import report_calls  # noqa: PLC0415 -- few links need it

        report_calls(merged, sink, dump=job.dumps_calls)
    if job.target.family == FAMILY_C and not sink.errors:
        rebuild_debug(merged, sink)
        steps.done("rebuild_debug")
    return merged


def _record_resolved(merged: Merged) -> None:
    """List the resolved relocations for --preserve-relocs."""
    from pylink._native import resolved  # noqa: PLC0415 -- few links ask for the record

    merged.outs, merged.keeps = resolved.record_resolved(
        merged.entities,
        merged.outs,
        merged.out_symbols,
        merged.keeps,
        merged.fixes,
        merged.out_of,
        merged.base,
        merged.objects.job.target.family,
    )


def _selected_kernels(objects: Objects, entities: bytes) -> bytes:
    """A byte per entity for kernels that an option or host code names; empty for all kernels."""
    options = objects.job.options
    references = objects.references
    if references is not None:
        return resolve.select_referenced(
            objects.arena, objects.symbols, entities, references.external, references.internal
        )
    if objects.job.mode & KEEP_CODE or not (options.kernels_used or options.variables_used):
        return b""
    patterns = [to_bytes(name) for name in options.kernels_used]
    return resolve.select_kernels(objects.arena, objects.symbols, entities, patterns)


def _fold_mercury(objects: Objects, merged: Merged, sink: Sink) -> bytes:
    """An int32 per input section: the equal Mercury section that stands for it, or -1.

    Empty when nothing folds, which costs most links a look at their section sizes.
    """
    numbers = elfread.find_ties(objects.arena, objects.files, objects.sections)
    objects.job.steps.done("find_ties")
    if not numbers and not objects.job.traces_folds:
        return b""
    from pylink.phases.fold import fold_mercury  # noqa: PLC0415 -- few links have copies

    return fold_mercury(objects, merged.symbol_role, numbers, sink)


def _report_undefined(merged: Merged, sink: Sink) -> None:
    objects = merged.objects
    undefined = resolve.find_undefined(objects.arena, objects.symbols, merged.entities)
    if undefined and sink.hears("undefined-reference"):
        from pylink.phases.report_symbols import report_undefined  # noqa: PLC0415 -- an error

        report_undefined(merged, undefined, sink)


def _report_recursion(merged: Merged, sink: Sink) -> bool:
    """Warn of kernels that recurse; whether kernels call functions with too many registers."""
    objects = merged.objects
    recursive, crowded = native_functions.find_trouble(
        objects.arena, objects.sections, merged.entities, merged.functions
    )
    if recursive and not objects.job.options.suppress_stack_size_warning:
        from pylink.phases.report_symbols import report_recursion  # noqa: PLC0415 -- a warning

        report_recursion(merged, recursive, sink)
    return bool(crowded)
