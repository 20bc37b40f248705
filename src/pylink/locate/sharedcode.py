"""Finds shared libraries with device code that a link lacks, and why it was not linked.

The libraries are read again from their files, only if a link fails.
"""

from __future__ import annotations

from pylink._native import elfread
from pylink.diagnostics.errors import LinkError
from pylink.diagnostics.policy import Policy
from pylink.diagnostics.record import note
from pylink.diagnostics.sink import Sink
from pylink.facts.elf import STB_LOCAL
from pylink.facts.inputkinds import CUBIN, SHARED
from pylink.facts.picknumbers import PickState
from pylink.inputs.hostobjects import pick_entries, scan
from pylink.inputs.picks import Pick
from pylink.inputs.sharedlib import module_ids
from pylink.inputs.sources import SourceBatch, Sources
from pylink.tables import extent, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pylink.diagnostics.record import Diagnostic
    from pylink.inputs.sources import Library
    from pylink.phases.init import Job


def find_owners(
    job: Job, libraries: Sequence[Library], undefined: set[str]
) -> dict[str, list[Diagnostic]]:
    """Return, by symbol, notes on libraries that define it in unlinked code, with the reason."""
    # By id of a module: the file of the library whose own device link has the module.
    owner = {identifier: library.file for library in libraries for identifier in library.closed}
    owners: dict[str, list[Diagnostic]] = {}
    for library in libraries:
        for module_id, names in _read_modules(job, library):
            for name in sorted(names & undefined):
                if module_id in library.closed:
                    hint = note("library-linked", file=library.file, symbol=name)
                elif module_id in owner:
                    hint = note(
                        "library-owned", file=library.file, symbol=name, owner=owner[module_id]
                    )
                else:
                    continue
                owners.setdefault(name, []).append(hint)
    return owners


def _read_modules(job: Job, library: Library) -> Iterator[tuple[bytes, set[str]]]:
    """Yield the id and the defined symbols of each module that has a cubin for the target.

    Nothing if the file is damaged or cannot be read.
    """
    try:
        with open(library.file, "rb") as stream:
            data = stream.read()
    except OSError:
        return
    sources = Sources()
    sources.add(SourceBatch(data, [library.file], bytes([SHARED]), extent(0, len(data))))
    sources.size = len(data)
    contents, faults = scan(sources)
    if faults:
        return
    ids = module_ids(contents.ids(0))
    silent_sink = Sink(policy=Policy())
    picked, _ = pick_entries(job, contents, faults, {}, silent_sink)
    for number in range(len(picked.source_numbers)):
        pick = Pick(picked.rows, number)
        if pick.kind != CUBIN or pick.state != PickState.GOOD or pick.container >= len(ids):
            continue
        try:
            cubin = picked.unpack(pick, silent_sink)
        except LinkError:
            continue
        yield ids[pick.container], _defined_symbols(cubin)


def _defined_symbols(cubin: bytes) -> set[str]:
    """Return the symbols that a cubin defines, except local ones; empty if it is damaged."""
    _, _, symbols, fault = elfread.parse(cubin, extent(0, len(cubin)))
    if fault:
        return set()
    return {
        text(cubin, symbol.name, symbol.name_size)
        for symbol in symbols
        if symbol.section >= 0 and symbol.info >> 4 != STB_LOCAL
    }
