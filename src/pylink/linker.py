"""From checked options to a link: what the command line and the Python interface share."""

from __future__ import annotations

from pylink import pipeline
from pylink.errors import LinkError
from pylink.inputs.libraries import find_libraries
from pylink.options import Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pylink.command.optiontable import Value
    from pylink.diagnostics import Sink
    from pylink.options import Input
    from pylink.outputs.plan import Plan
    from pylink.pipeline import Linked


def run_link(
    values: Mapping[str, Value],
    inputs: list[Input],
    plan: Plan,
    sink: Sink,
    whole_libraries: Sequence[bool] | None = None,
    *,
    compiles: bool = True,
) -> Linked:
    """Link with checked options, reporting to `sink`; LinkError after any error.

    `plan` has the files that will be written. `whole_libraries` says for each library whether all
    members are asked for, None what `whole_archive` says for all. Without `compiles`, PTX and
    LTO-IR are an error.
    """
    options = Options(values, [one.name for one in inputs], compiles=compiles)
    if whole_libraries is None:
        whole_libraries = [options.whole_archive] * len(options.library)
    libraries = find_libraries(options, whole_libraries, plan, sink)
    linked = pipeline.link(options, [*inputs, *libraries], plan, sink)
    if sink.errors:
        raise LinkError(sink.diagnostics)
    return linked
