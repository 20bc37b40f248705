"""Archives: the members that a link takes from them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.inputs.pieces import Source


def members(archive: Source, sink: Sink) -> list[Source]:
    """The members of `archive` to be linked, in its order; a damaged one is reported."""
    sink.fatal("unsupported-input", file=archive.name, what="an archive")
