"""Leaving out the files that a link does not take."""

from __future__ import annotations

from struct import pack

from pylink._native import selection
from pylink.inputs.loaded import SYSTEM_LIBRARY, Loaded
from pylink.inputs.pieces import SYSTEM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.diagnostics import Sink
    from pylink.inputs.pieces import Source
    from pylink.phases.init import Job


def is_system(job: Job, name: str) -> bool:
    """Whether the link treats a file of this name as part of the device runtime library."""
    return SYSTEM_LIBRARY in name and not job.options.keep_system_libraries


def select(loaded: Loaded, sources: Sequence[Source] = ()) -> Loaded:
    """The link of those of the cubins that it takes; `sources` are what the pieces came from."""
    job, pieces = loaded.job, loaded.pieces
    homes = [sources[piece.number] for piece in pieces]
    demand = bytearray(home.demand for home in homes) or bytearray(len(loaded.names))
    for number, name in enumerate(loaded.names):
        if is_system(job, name):
            demand[number] = SYSTEM
    if not any(demand):
        return loaded
    groups = pack(f"<{len(demand)}i", *([home.group for home in homes] or [0] * len(demand)))
    taken = selection.select(
        loaded.arena, loaded.extents, bytes(demand), groups, not job.executable
    )
    chosen = [number for number, take in enumerate(taken) if take]
    return Loaded(
        job,
        [loaded.names[number] for number in chosen],
        loaded.arena,
        b"".join(loaded.extents[16 * number : 16 * number + 16] for number in chosen),
        [pieces[number] for number in chosen] if pieces else [],
        loaded.modules,
        loaded.references,
    )


def warn_of_skipped(loaded: Loaded, sources: Sequence[Source], sink: Sink) -> None:
    """Report, as nvlink does, the libraries that were no archives for the host and of no use."""
    used = {sources[piece.number].group for piece in loaded.pieces}
    for number, one in enumerate(loaded.job.inputs):
        if one.skipped is not None and number + 1 not in used:
            sink.report("library-skipped", file=one.name, library=one.skipped)
