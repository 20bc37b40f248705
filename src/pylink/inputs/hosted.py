"""Host objects and fat binaries: which of their entries fit the target."""

from __future__ import annotations

from pylink.inputs.kinds import HOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.inputs.pieces import Piece, Source
    from pylink.phases.init import Job


def unpack_hosted(job: Job, sources: list[Source], sink: Sink) -> dict[Source, list[Piece]]:
    """The pieces for the target in each of the sources; one without code for it is warned of."""
    for source in sources:
        if source.kind == HOST and source.name.endswith(".cubin"):
            sink.fatal("wrong-machine", file=source.name)
        sink.fatal("unsupported-input", file=source.name, what="a fat binary or host object")
    return {}
