"""PTX to cubins."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.diagnostics import Sink
    from pylink.options import Options
    from pylink.timing import CsvTiming


class Request:
    """One PTX text to compile for `arch`; the names are those of its row in -time.

    `inputs` is also what diagnostics call it.
    """

    __slots__ = ("arch", "inputs", "output", "source", "text")

    def __init__(self, source: str, inputs: str, output: str, text: bytes, arch: str) -> None:
        self.source = source
        self.inputs = inputs
        self.output = output
        self.text = text
        self.arch = arch


def compile_ptx(
    requests: Sequence[Request], options: Options, sink: Sink, timing: CsvTiming | None
) -> list[bytes]:
    """The cubin of each request, in order; LinkError when one fails."""
    sink.fatal("unsupported-input", file=requests[0].inputs, what="PTX")
