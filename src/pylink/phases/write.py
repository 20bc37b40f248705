"""Phase write: puts the output file in place atomically."""

from __future__ import annotations

from pylink.diagnostics.errors import reason_of
from pylink.files.atomic import has_contents, write_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.files.buffer import OutputBuffer
    from pylink.phases.finalize import Final
    from pylink.phases.lto import Optimized


def write(sink: Sink, final: Final | Optimized, buffer: OutputBuffer | None) -> None:
    """Commit the output buffer if it is a file, else write the image to the output file.

    With --write-if-changed a file with the same contents is not touched, so that a build system
    sees no change.
    """
    options = final.job.options
    path = options.output_file
    if path is None or (options.write_if_changed and has_contents(path, final.image)):
        return
    try:
        if buffer is not None and buffer.commit():
            return
    except OSError as error:
        sink.fatal("cannot-write-file", file=path, reason=reason_of(error))
    write_output(path, final.image, sink)
