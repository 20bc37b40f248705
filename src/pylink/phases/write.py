"""Phase write: the output appears whole or not at all."""

from __future__ import annotations

from pylink.outputs.wholefile import holds, write_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.phases.finalize import Final
    from pylink.phases.lto import Optimized


def write(final: Final | Optimized, sink: Sink) -> None:
    """Write the image to the output path, if there is one.

    With --write-if-changed a file that holds the image already is not touched, so that a build
    system sees nothing new.
    """
    options = final.job.options
    path = options.output_file
    if path is None or (options.write_if_changed and holds(path, final.image)):
        return
    write_output(path, final.image, sink)
