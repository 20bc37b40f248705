"""LTO-IR to PTX."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.diagnostics import Sink
    from pylink.inputs.pieces import Piece
    from pylink.options import Options
    from pylink.timing import CsvTiming


def compile_lto(
    modules: Sequence[Piece], options: Options, sink: Sink, timing: CsvTiming | None
) -> bytes:
    """One PTX text of all modules, which are LTO-IR files or fat binaries of one LTO entry each."""
    sink.fatal("unsupported-input", file=modules[0].name, what="LTO-IR")
