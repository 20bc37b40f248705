"""Links with checked options, for the command line and the Python interface."""

from __future__ import annotations

from pylink import pipeline
from pylink.diagnostics.errors import LinkError
from pylink.inputs.libraries import find_libraries
from pylink.options.model import Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pylink.diagnostics import Sink
    from pylink.options.model import Input
    from pylink.options.plan import OutputPlan
    from pylink.options.table import Value
    from pylink.phases.sharing import SharedInputs
    from pylink.pipeline import LinkOutput


def run_link(
    values: Mapping[str, Value],
    inputs: list[Input],
    plan: OutputPlan,
    sink: Sink,
    whole_libraries: Sequence[bool] | None = None,
    *,
    compiles: bool = True,
    noted: tuple[str, str] | None = None,
    library_path: str | None = None,
    toolkit: str | None = None,
    shows_progress: bool = False,
    shared: SharedInputs | None = None,
    on_phase_end: Callable[[str], None] | None = None,
) -> LinkOutput:
    """Link with checked options, reporting to `sink`; LinkError after any error.

    `values` are the values of options, by attribute. `plan` has the files that will be written.
    `whole_libraries` says for each library whether all members are linked (default: `whole_archive`
    for all). Without `compiles`, PTX and LTO-IR are an error. For a reproduced link, `noted` has
    the output and options that the tool note names, and `library_path` the value of LIBRARY_PATH.
    `toolkit` is the release of the toolkit whose linker pylink replaces. `shows_progress`, `shared`
    and `on_phase_end` are those of `pipeline.link`.
    """
    names = [source.name for source in inputs]
    options = Options(values, names, compiles=compiles, noted=noted, toolkit=toolkit)
    if whole_libraries is None:
        whole_libraries = [options.whole_archive] * len(options.library)

    def link() -> LinkOutput:
        try:
            libraries = find_libraries(options, whole_libraries, plan, sink, library_path)
            linked = pipeline.link(
                options,
                [*inputs, *libraries],
                plan,
                sink,
                shows_progress=shows_progress,
                shared=shared,
                on_phase_end=on_phase_end,
            )
        except MemoryError:
            linked = None
        if linked is None:  # outside the `except`: by now the link's memory is free for the report
            sink.fatal("out-of-memory")
        if sink.errors:
            raise LinkError(sink.diagnostics)
        return linked

    if options.reproduce is None:
        return _with_threads(options.threads, link)
    from pylink.outputs.reproducer import Reproducer, pack_after

    reproducer = Reproducer(options, values, inputs, whole_libraries, plan)
    failed = True
    try:
        linked = _with_threads(options.threads, link)
        failed = False
    finally:
        pack_after(reproducer, sink, failed=failed)
    return linked


def _with_threads(count: int | None, link: Callable[[], LinkOutput]) -> LinkOutput:
    """Run the link with `count` threads; without a number, with the process's setting."""
    if not count:
        return link()
    from pylink._native.cores import use_threads

    earlier_count = use_threads(count)
    try:
        return link()
    finally:
        use_threads(earlier_count)
