"""Phase merge: symbols resolved, dead code gone, every section and symbol of the output born."""

from __future__ import annotations

from pylink._native import elfread, pools, resolve
from pylink._native import functions as native_functions
from pylink._native import merge as native_merge
from pylink._native.tables import Marks
from pylink.diagnostics.stream import to_bytes
from pylink.facts.target import FAMILY_C
from pylink.phases.init import KEEP_CODE
from pylink.phases.kernels import rewrite_kernels
from pylink.phases.rebuild import rebuild_debug
from pylink.phases.results import Merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.phases.results import Objects


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
    # Entities get their numbers, each definition its fate; nobody else decides between copies.
    clashes = resolve.resolve(merged)
    if clashes:
        from pylink.phases.report_symbols import report_clashes  # noqa: PLC0415 -- errors

        report_clashes(objects, clashes, sink)
    steps.done("resolve")
    sections = pools.cut_pools(merged)
    if sections is not objects.sections:
        merged.objects = objects = objects.replaced(sections=sections)
    # Code is live or dead from here on; nvlink makes both, and so numbers count both.
    resolve.find_live(merged, _selected_kernels(merged), bool(job.mode & KEEP_CODE))
    steps.done("find_live")
    native_functions.analyze(merged)
    steps.done("analyze_functions")
    crowded = False
    if job.executable:
        crowded = _report_recursion(merged, sink)
        _report_undefined(merged, sink)
    steps.done("find_undefined")
    if sink.errors and not (crowded or job.dumps_calls or job.options.verbose):
        return None
    # Before the births, as kernels without literals of their own get a section for others'.
    pools.place_pools(merged)
    steps.done("place_pools")
    if job.folds_mercury:
        _fold_mercury(merged, sink)
    if job.traces_folds:
        from pylink.phases.trace import trace_inputs  # noqa: PLC0415 -- few links are traced

        trace_inputs(merged)
    # The events of docs/order.md: sections and symbols, their names, and from sm_100 on the second
    # program. Nothing is born after it.
    native_merge.merge(merged)
    steps.done("merge_sections")
    if job.target.family == FAMILY_C and merged.pools:
        from pylink._native import poolrelocs  # noqa: PLC0415 -- few device functions have pools

        poolrelocs.adopt_relocations(merged)
        steps.done("adopt_relocations")
    if job.options.preserve_relocs:
        from pylink._native import resolved  # noqa: PLC0415 -- few links ask for the record

        resolved.record_resolved(merged)
        steps.done("record_resolved")
    if crowded or job.dumps_calls:
        from pylink.phases.report_calls import report_calls  # noqa: PLC0415 -- few links need it

        report_calls(merged, sink, dump=job.dumps_calls)
    if job.target.family == FAMILY_C and not sink.errors:
        rebuild_debug(merged, sink)
        steps.done("rebuild_debug")
    return merged.seal()


def _selected_kernels(merged: Merged) -> Marks:
    """By entity: whether an option or host code names the kernel; empty for all kernels."""
    objects = merged.objects
    options = objects.job.options
    if objects.job.debug:
        return Marks()  # nvlink does not look at what is selected
    references = objects.references
    if references is not None:
        return resolve.select_referenced(merged, references.external, references.internal)
    if not (options.kernels_used or options.variables_used):
        return Marks()
    return resolve.select_kernels(merged, [to_bytes(name) for name in options.kernels_used])


def _fold_mercury(merged: Merged, sink: Sink) -> None:
    """Find sections that equal Mercury sections stand for; most links have no sizes alike."""
    job = merged.objects.job
    numbers = elfread.find_ties(merged.objects)
    job.steps.done("find_ties")
    if numbers or job.records_folds:
        from pylink.phases.fold import fold_mercury  # noqa: PLC0415 -- few links have copies

        merged.stand_ins = fold_mercury(merged, numbers, sink)


def _report_undefined(merged: Merged, sink: Sink) -> None:
    undefined = resolve.find_undefined(merged)
    if undefined and sink.hears("undefined-reference"):
        from pylink.phases.report_symbols import report_undefined  # noqa: PLC0415 -- an error

        report_undefined(merged, undefined, sink)


def _report_recursion(merged: Merged, sink: Sink) -> bool:
    """Warn of kernels that recurse; whether kernels call functions with too many registers."""
    recursive, crowded = native_functions.find_trouble(merged)
    if recursive and not merged.objects.job.options.suppress_stack_size_warning:
        from pylink.phases.report_symbols import report_recursion  # noqa: PLC0415 -- a warning

        report_recursion(merged, recursive, sink)
    return crowded
