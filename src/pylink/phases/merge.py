"""Phase merge: symbols resolved, dead code gone, every section and symbol of the output created."""

from __future__ import annotations

from pylink._native import elfread, pools, resolve
from pylink._native import functions as native_functions
from pylink._native import merge as native_merge
from pylink.diagnostics.stream import to_bytes
from pylink.facts.target import CONSTANT_LIMIT, FAMILY_C
from pylink.phases.init import KEEP_CODE
from pylink.phases.kernels import rewrite_kernels
from pylink.phases.rebuild import rebuild_debug
from pylink.phases.results import Merged
from pylink.phases.roots import select_kernels
from pylink.tables import WHOLE, entity_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink._native.tables import Clashes
    from pylink.diagnostics import Sink
    from pylink.phases.results import Objects


def merge(sink: Sink, objects: Objects) -> Merged | None:
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
    _report_files(merged, clashes, sink)
    steps.done("resolve")
    sections = pools.cut_pools(merged)
    if sections is not objects.sections:
        merged.objects = objects = objects.replaced(sections=sections)
    # Code is live or dead from here on; nvlink makes both, and so numbers count both.
    resolve.find_live(merged, select_kernels(merged), bool(job.mode & KEEP_CODE))
    steps.done("find_live")
    if job.folds_constants and objects.references is None and not job.options.preserve_relocs:
        merged.objects = objects = _drop_constants(merged)
    native_functions.analyze(merged)
    steps.done("analyze_functions")
    if job.options.link_as_tools_patch:
        _check_patches(merged, sink)
    if job.executable:
        merged.crowded = _report_recursion(merged, sink)
        _find_missing(merged, sink)
    steps.done("find_undefined")
    if sink.errors and not (merged.crowded or job.dumps_calls or job.options.verbose):
        report_missing(merged, sink)
        return None
    # Before anything is created, as kernels without literals of their own get a section for
    # others'.
    pools.place_pools(merged)
    steps.done("place_pools")
    if job.folds_mercury:
        _fold_mercury(merged, sink)
    if job.traces_folds:
        from pylink.phases.trace import trace_inputs

        trace_inputs(merged)
    # The events of docs/order.md: sections and symbols, their names, and from sm_100 on the second
    # program. Nothing is created after it.
    native_merge.merge(merged)
    steps.done("merge_sections")
    if job.target.family == FAMILY_C and merged.pools:
        from pylink._native import poolrelocs

        poolrelocs.adopt_relocations(merged)
        steps.done("adopt_relocations")
    if job.options.preserve_relocs:
        from pylink._native import resolved  # few links ask for the record

        resolved.record_resolved(merged)
        steps.done("record_resolved")
    if job.target.family == FAMILY_C and not (sink.errors or merged.undefined):
        rebuild_debug(merged, sink)
        steps.done("rebuild_debug")
    return merged.seal()


def _report_files(merged: Merged, clashes: Clashes, sink: Sink) -> None:
    """Report inputs that do not go together, and definitions that exclude each other."""
    objects = merged.objects
    if elfread.find_flagged(objects.files, WHOLE):
        from pylink.phases.whole import warn_of_others

        warn_of_others(objects, clashes, sink)
    if clashes:
        from pylink.phases.report_symbols import report_clashes

        report_clashes(merged, clashes, sink)


def _drop_constants(merged: Merged) -> Objects:
    """The inputs without the constants of unselected code, if the bank would overflow."""
    from pylink._native import unused  # few links select kernels

    names = [to_bytes(name) for name in merged.objects.job.options.variables_used]
    sections = unused.drop_constants(merged, names, CONSTANT_LIMIT)
    if sections is merged.objects.sections:
        return merged.objects
    return merged.objects.replaced(sections=sections)


def _fold_mercury(merged: Merged, sink: Sink) -> None:
    """Find Mercury sections that repeat another input's. In most links no two sizes are equal."""
    job = merged.objects.job
    numbers = elfread.find_ties(merged.objects)
    job.steps.done("find_ties")
    if numbers or job.records_folds:
        from pylink.phases.fold import fold_mercury

        merged.stand_ins = fold_mercury(merged, numbers, sink)


def report_missing(merged: Merged, sink: Sink) -> None:
    """Report what an executable needs and no input defines."""
    if merged.undefined:
        from pylink.phases.report_symbols import report_undefined

        report_undefined(merged, merged.undefined, sink)


def report_unselected(merged: Merged, sink: Sink) -> None:
    """Say which kernels went although nothing registers the rest for host code.

    A link that does not ask for what registers its output may be for a program that loads it.
    """
    objects = merged.objects
    if objects.references is None or objects.job.options.register_link_binaries is not None:
        return
    removed = resolve.find_unselected(merged)
    if removed and sink.is_enabled("kernels-removed"):
        from pylink.phases.report_removed import report_removed

        report_removed(merged, removed, sink)


def _find_missing(merged: Merged, sink: Sink) -> None:
    """Functions that nothing calls, if that is asked for, and what no input defines.

    Also variables that another image has as well, in links that borrow code.
    """
    libraries = merged.objects.libraries
    if libraries is not None and libraries.copied:
        from pylink.phases.report_borrowed import report_borrowed

        report_borrowed(merged, sink)
    if merged.objects.job.options.extra_warnings:
        for function in resolve.find_uncalled(merged):
            sink.report("never-called", symbol=entity_name(merged, function))
    undefined = resolve.find_undefined(merged)
    if undefined and sink.is_enabled("undefined-reference"):
        merged.undefined = undefined


def _check_patches(merged: Merged, sink: Sink) -> None:
    """Refuse functions that were not compiled to be inserted by tools."""
    function = native_functions.find_unpatched(merged)
    if function < 0:
        return
    objects = merged.objects
    file = objects.names[objects.symbols[merged.entities[function].winner].file]
    # As nvlink of 13.4 and later says it, and of 13.3.
    option = "-astoolspatch" if objects.release.toolkit >= 134 else "--astoolspatch"
    sink.fatal("not-a-patch", symbol=entity_name(merged, function), file=file, option=option)


def _report_recursion(merged: Merged, sink: Sink) -> bool:
    """Warn of kernels that recurse; whether kernels call functions with too many registers."""
    recursive, crowded = native_functions.find_recursive(merged)
    if recursive and not merged.objects.job.options.suppress_stack_size_warning:
        from pylink.phases.report_symbols import report_recursion

        report_recursion(merged, recursive, sink)
    return crowded
