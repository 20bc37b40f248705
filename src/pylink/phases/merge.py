"""Phase merge: resolves symbols, drops dead code, creates all output sections and symbols."""

from __future__ import annotations

from pylink._native import elfread, pools, resolve
from pylink._native import functions as native_functions
from pylink._native import merge as native_merge
from pylink.diagnostics.stream import to_bytes
from pylink.facts.releases import TRAIT_ONE_HYPHEN
from pylink.facts.rownumbers import FileFlag, LinkMode
from pylink.facts.target import CONSTANT_LIMIT, FAMILY_C
from pylink.phases.kernels import rewrite_kernels
from pylink.phases.rebuild import rebuild_debug
from pylink.phases.results import Merged
from pylink.phases.roots import select_kernels
from pylink.tables import entity_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink._native.tables import Clashes
    from pylink.diagnostics import Sink
    from pylink.phases.results import Objects


def merge(sink: Sink, objects: Objects) -> Merged | None:
    """Resolve symbols, drop dead code, and create the output's sections, symbols and relocations.

    None after errors, unless later phases have more to report.
    """
    job = objects.job
    steps = job.steps
    if job.target.family == FAMILY_C:
        objects = rewrite_kernels(objects, sink)
        if sink.errors:
            return None
        steps.end_step("rewrite_kernels")
    merged = Merged(objects)
    # This step numbers the entities (distinct symbols), and decides which definition of each wins.
    clashes = resolve.resolve(merged)
    _warn_of_whole_programs(objects, clashes, sink)
    _report_clashes(merged, clashes, sink)
    steps.end_step("resolve")
    merged.replace_sections(pools.cut_pools(merged))
    # From here on, code is live or dead. nvlink creates sections of both, so dead code stays in the
    # tables.
    resolve.find_live(merged, select_kernels(merged), keep_all=bool(job.mode & LinkMode.KEEP_CODE))
    steps.end_step("find_live")
    if job.folds_constants and objects.references is None and not job.options.preserve_relocs:
        _drop_constants(merged)
    native_functions.analyze(merged)
    steps.end_step("analyze_functions")
    if job.options.link_as_tools_patch:
        _check_patches(merged, sink)
    if job.executable:
        merged.exceeds_registers = _report_recursion(merged, sink)
        _report_borrowed(merged, sink)
        _report_uncalled(merged, sink)
        _record_undefined(merged, sink)
    steps.end_step("find_undefined")
    if sink.errors and not (merged.exceeds_registers or job.dumps_calls or job.options.verbose):
        _report_undefined(merged, sink)
        return None
    # Pools (literals and jump tables of functions) are placed before sections are created: kernels
    # without own literals get a section for literals of functions that they call.
    pools.place_pools(merged)
    steps.end_step("place_pools")
    if job.folds_mercury:
        _fold_mercury(merged, sink)
    if job.traces_folds:
        from pylink.phases.trace import trace_inputs

        trace_inputs(merged)
    # This call creates sections, symbols and names in nvlink's order (docs/order.md), and from
    # sm_100 on sections of the finalizer. After it, only --preserve-relocs creates sections.
    native_merge.merge(merged)
    steps.end_step("merge_sections")
    if job.target.family == FAMILY_C and merged.pools:
        from pylink._native import poolrelocs

        poolrelocs.adopt_relocations(merged)
        steps.end_step("adopt_relocations")
    if job.options.preserve_relocs:
        from pylink._native import resolved  # only this option needs it

        resolved.record_resolved(merged)
        steps.end_step("record_resolved")
    if job.target.family == FAMILY_C and not (sink.errors or merged.undefined):
        rebuild_debug(merged, sink)
        steps.end_step("rebuild_debug")
    return merged.seal()


def _warn_of_whole_programs(objects: Objects, clashes: Clashes, sink: Sink) -> None:
    """Warn of inputs beside a whole program (`nvcc -ewp`), if the link has one."""
    if elfread.find_flagged(objects.files, FileFlag.WHOLE_PROGRAM):
        from pylink.phases.whole_programs import warn_of_others

        warn_of_others(objects, clashes, sink)


def _report_clashes(merged: Merged, clashes: Clashes, sink: Sink) -> None:
    """Report symbols of one name that contradict each other, and end the link if there are any."""
    if clashes:
        from pylink.phases.report_symbols import report_clashes

        report_clashes(merged, clashes, sink)


def _drop_constants(merged: Merged) -> None:
    """Drop the constants of unselected code, if the constant bank would overflow."""
    from pylink._native import unused  # few links select kernels

    names = [to_bytes(name) for name in merged.objects.job.options.variables_used]
    merged.replace_sections(unused.drop_constants(merged, names, CONSTANT_LIMIT))


def _fold_mercury(merged: Merged, sink: Sink) -> None:
    """Find Mercury sections that repeat another input's.

    Bytes are compared only if files agree in kinds, sizes and names of these sections, which is
    rare. If observers or -edbg need the decisions, all files are compared.
    """
    job = merged.objects.job
    numbers = elfread.find_ties(merged.objects)
    job.steps.end_step("find_ties")
    if numbers or job.records_folds:
        from pylink.phases.fold import fold_mercury

        merged.stand_ins = fold_mercury(merged, numbers, sink)


def _report_borrowed(merged: Merged, sink: Sink) -> None:
    """Report variables of modules that a library's image has, too: each image has its own copy."""
    libraries = merged.objects.libraries
    if libraries is not None and libraries.copied:
        from pylink.phases.report_borrowed import report_borrowed

        report_borrowed(merged, sink)


def _report_uncalled(merged: Merged, sink: Sink) -> None:
    """Report functions whose address is taken and that `find_live` did not reach.

    Only with --extra-warnings.
    """
    if merged.objects.job.options.extra_warnings:
        for function in resolve.find_uncalled(merged):
            sink.report("never-called", symbol=entity_name(merged, function))


def _record_undefined(merged: Merged, sink: Sink) -> None:
    """Record the undefined entities in `merged`, unless the user turned their error off."""
    undefined = resolve.find_undefined(merged)
    if undefined and sink.is_enabled("undefined-reference"):
        merged.undefined = undefined


def _report_undefined(merged: Merged, sink: Sink) -> None:
    """Report the recorded undefined entities in a link that ends here.

    In a link that continues, layout reports them.
    """
    if merged.undefined:
        from pylink.phases.report_symbols import report_undefined

        report_undefined(merged, sink)


def _check_patches(merged: Merged, sink: Sink) -> None:
    """Refuse functions that were not compiled as tools patches."""
    function = native_functions.find_unpatched(merged)
    if function < 0:
        return
    objects = merged.objects
    file = objects.names[objects.symbols[merged.entities[function].winner].file]
    option = "-astoolspatch" if objects.traits & TRAIT_ONE_HYPHEN else "--astoolspatch"
    sink.fatal("not-a-patch", symbol=entity_name(merged, function), file=file, option=option)


def _report_recursion(merged: Merged, sink: Sink) -> bool:
    """Warn of kernels with unbounded stack; return whether any kernel exceeds its registers.

    It does if it reaches a function with more registers than it was limited to itself.
    """
    recursive, exceeds_registers = native_functions.find_recursive(merged)
    if recursive and not merged.objects.job.options.suppress_stack_size_warning:
        from pylink.phases.report_symbols import report_recursion

        report_recursion(merged, recursive, sink)
    return exceeds_registers
