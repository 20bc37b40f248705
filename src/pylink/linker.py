"""From checked options to a link: what the command line and the Python interface share."""

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
    from pylink.options.plan import Plan
    from pylink.options.table import Value
    from pylink.phases.sharing import SharedInputs
    from pylink.pipeline import Linked


def run_link(
    values: Mapping[str, Value],
    inputs: list[Input],
    plan: Plan,
    sink: Sink,
    whole_libraries: Sequence[bool] | None = None,
    *,
    compiles: bool = True,
    noted: tuple[str, str] | None = None,
    library_path: str | None = None,
    toolkit: str | None = None,
    shows_progress: bool = False,
    shared: SharedInputs | None = None,
    between: Callable[[str], None] | None = None,
) -> Linked:
    """Link with checked options, reporting to `sink`; LinkError after any error.

    `plan` has the files that will be written. `whole_libraries` says for each library whether all
    members are asked for, None what `whole_archive` says for all. Without `compiles`, PTX and
    LTO-IR are an error. A link that is done again has what the tool note said of its output and
    options as `noted`, and what was in the environment as `library_path`. `toolkit` is the release
    of the toolkit that pylink is the linker of. `shows_progress`, `shared`, `between`: see
    `pipeline.link`.
    """
    names = [source.name for source in inputs]
    options = Options(values, names, compiles=compiles, noted=noted, toolkit=toolkit)
    if whole_libraries is None:
        whole_libraries = [options.whole_archive] * len(options.library)

    def link() -> Linked:
        try:
            libraries = find_libraries(options, whole_libraries, plan, sink, library_path)
            linked = pipeline.link(
                options,
                [*inputs, *libraries],
                plan,
                sink,
                shows_progress=shows_progress,
                shared=shared,
                between=between,
            )
        except MemoryError:
            linked = None
        if linked is None:  # not before all that the link had is free: reports need some of it
            sink.fatal("out-of-memory")
        if sink.errors:
            raise LinkError(sink.diagnostics)
        return linked

    if options.reproduce is None:
        return with_threads(options.threads, link)
    from pylink.outputs.reproducer import Reproducer, pack_after

    reproducer = Reproducer(options, values, inputs, whole_libraries, plan)
    failed = True
    try:
        linked = with_threads(options.threads, link)
        failed = False
    finally:
        pack_after(reproducer, sink, failed=failed)
    return linked


def with_threads(count: int | None, link: Callable[[], Linked]) -> Linked:
    """Have the link use so many threads; as many as the process has without a number."""
    if not count:
        return link()
    from pylink._native.cores import use_threads

    before = use_threads(count)
    try:
        return link()
    finally:
        use_threads(before)
