"""Phase write: the output appears atomically."""

from __future__ import annotations

from pylink.diagnostics.errors import reason_of
from pylink.files.atomic import holds, write_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.files.buffer import OutputBuffer
    from pylink.phases.finalize import Final
    from pylink.phases.lto import Optimized


def write(sink: Sink, final: Final | Optimized, buffer: OutputBuffer | None) -> None:
    """Give the output its place: the file that `buffer` is, or one that the image is written to.

    With --write-if-changed a file that holds the image already is not touched, so that a build
    system sees nothing new.
    """
    options = final.job.options
    path = options.output_file
    if path is None or (options.write_if_changed and holds(path, final.image)):
        return
    try:
        if buffer is not None and buffer.commit():
            return
    except OSError as error:
        sink.fatal("cannot-write-file", file=path, reason=reason_of(error))
    write_output(path, final.image, sink)
