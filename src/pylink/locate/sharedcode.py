"""Which shared library has device code that a link lacks, and why it was not linked.

Reads the libraries again, from their files: looked for only when a link fails.
"""

from __future__ import annotations

from pylink._native import elfread, fatbin
from pylink.diagnostics.policy import Policy
from pylink.diagnostics.record import note
from pylink.diagnostics.sink import Sink
from pylink.errors import LinkError
from pylink.inputs.choice import ENTRY_ELF, Chooser
from pylink.inputs.hosted import SOURCE, choose
from pylink.inputs.kinds import SHARED
from pylink.inputs.payload import DamagedPayload, Unpacker
from pylink.inputs.pieces import Hosted
from pylink.inputs.sharedlib import module_ids
from pylink.tables import extent, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pylink.diagnostics.record import Diagnostic
    from pylink.inputs.pieces import Library
    from pylink.phases.init import Job


def find_owners(
    job: Job, libraries: Sequence[Library], wanted: set[str]
) -> dict[str, list[Diagnostic]]:
    """For each wanted symbol that a library defines in code not linked, a note that says why."""
    owner = {one: library.file for library in libraries for one in library.closed}
    found: dict[str, list[Diagnostic]] = {}
    for library in libraries:
        for module, names in _modules(job, library):
            for name in sorted(names & wanted):
                if module in library.closed:
                    hint = note("library-linked", file=library.file, symbol=name)
                elif module in owner:
                    hint = note(
                        "library-owned", file=library.file, symbol=name, owner=owner[module]
                    )
                else:
                    continue
                found.setdefault(name, []).append(hint)
    return found


def _modules(job: Job, library: Library) -> Iterator[tuple[bytes, set[str]]]:
    """The id and the defined symbols of each module; none where the file cannot be read."""
    try:
        with open(library.file, "rb") as stream:
            data = stream.read()
    except OSError:
        return
    entries, sources, faults = fatbin.find_entries(data, extent(0, len(data)), bytes([SHARED]))
    if faults:
        return
    ids = module_ids(Hosted(SOURCE.unpack(sources), data))
    unpacker = Unpacker(job.options.max_uncompressed_size, Sink(policy=Policy()))
    for entry, fits in choose(entries, Chooser(job.target, optimizes=job.optimizes)):
        _, container, _, kind, _, header_size, flags, offset, _, size, full_size = entry
        if not fits or kind != ENTRY_ELF or container >= len(ids):
            continue
        start = offset + header_size
        try:
            unpacker.reserve(flags, full_size)
            packed = memoryview(data)[start : start + size]
            cubin = unpacker.unpack(packed, flags, full_size, library.file)
        except (DamagedPayload, LinkError):
            continue
        yield ids[container], _defined(cubin)


def _defined(cubin: bytes) -> set[str]:
    """The global symbols that a cubin defines."""
    _, _, symbols, fault = elfread.parse(cubin, extent(0, len(cubin)))
    if fault:
        return set()
    return {
        text(cubin, one.name, one.name_size)
        for one in symbols
        if one.section >= 0 and one.info >> 4
    }
