"""Definitions of undefined names in code that a link had at hand and did not take.

That is code of inputs for another architecture, PTX in archives, and other files that -l could have
found. All are opened again: looked for only when a link fails.
"""

from __future__ import annotations

import re

from pylink._native import elfread
from pylink.diagnostics.errors import LinkError
from pylink.diagnostics.policy import Policy
from pylink.diagnostics.record import note
from pylink.diagnostics.sink import Sink
from pylink.diagnostics.stream import to_bytes
from pylink.files.reading import Incoming
from pylink.inputs.choice import ENTRY_ELF, ENTRY_PTX, Chooser
from pylink.inputs.expansion import find_members
from pylink.inputs.hostobjects import entry_word, scan
from pylink.inputs.kinds import ARCHIVE, CUBIN, PTX, THIN_ARCHIVE, kind_of
from pylink.inputs.libraries import find_hidden
from pylink.inputs.payload import DamagedPayload, Unpacker
from pylink.inputs.sources import Run, Sources
from pylink.options.model import Input
from pylink.rowformats import ENTRY
from pylink.tables import extent, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import TypeAlias

    from pylink.diagnostics.record import Diagnostic
    from pylink.phases.init import Job

    # A name, the file that defines it, in code for which architecture, and instead of which code.
    Definition: TypeAlias = tuple[str, str, str, str]

# So many notes on one name, and bytes of all files together with what is decompressed of them.
MOST_NOTES = 3
MOST_BYTES = 1 << 28

# What stands for the code that was taken where it is none, or this very code.
NONE, SAME, COMPILED = "", "same", "compiled"

# A definition in PTX, up to its name: parameters, a size, a value or a body follow.
_PTX_NAME = re.compile(rb"\.(?:visible|weak)\s[^;{}=]*?(?<![.\w$])([A-Za-z_$%][\w$]*)\s*[\[(;={]")


def find_unlinked(job: Job, wanted: Collection[str]) -> dict[str, list[Diagnostic]]:
    """For each wanted symbol, notes on the files that define it and what to do to have it."""
    search = _Search(job, wanted)
    diagnostics: dict[str, list[Diagnostic]] = {}

    def add(name: str, hint: Diagnostic) -> None:
        if len(diagnostics.setdefault(name, [])) < MOST_NOTES:
            diagnostics[name].append(hint)

    for source in job.inputs:
        places: dict[tuple[str, str, str], list[str]] = {}
        for name, file, arch, place in search.definitions(source):
            places.setdefault((name, file, place), []).append(arch)
        for (name, file, place), archs in places.items():
            hint = _why(job, name, file, place, ", ".join(dict.fromkeys(archs)))
            if hint is not None:
                add(name, hint)
    for library, other, path in find_hidden(job.options):
        for name, file in {row[:2]: None for row in search.definitions(Input(path))}:
            where = "in-other-library"
            add(name, note(where, symbol=name, file=file, library=library, other=other))
    return diagnostics


def _why(job: Job, name: str, file: str, place: str, archs: str) -> Diagnostic | None:
    """Why a definition in an input was not linked."""
    arch = job.options.arch
    if place == NONE:
        return note("in-other-arch", symbol=name, file=file, archs=archs, arch=arch)
    if place == COMPILED:
        return note("in-archived-ptx", symbol=name, file=file)
    if place == SAME:  # what the link says of the file tells more
        return None
    return note("in-other-entry", symbol=name, file=file, archs=archs, linked=place)


class _Search:
    """Opens files until they are too many; `wanted` are the names that it looks for."""

    def __init__(self, job: Job, wanted: Collection[str]) -> None:
        self._job = job
        self._names = wanted
        self._texts = [to_bytes(name) for name in wanted]
        self._chooser = Chooser(job.target, optimizes=job.optimizes)
        self._silent = Sink(policy=Policy())
        self._unpacker = Unpacker(MOST_BYTES, 0, self._silent)
        self._left = MOST_BYTES

    def definitions(self, entry_input: Input) -> Iterator[Definition]:
        """What an input defines of the wanted names; nothing of one that cannot be read."""
        try:
            sources = self._open(entry_input)
            contents, _ = scan(sources)
            for number, kind in enumerate(sources.kinds):
                source = sources[number]
                if kind == CUBIN:
                    for name in self._defined(source.data):
                        yield name, source.name, "", SAME
                elif kind == PTX and sources.group(number) and not entry_input.whole:
                    for name in self._declared(source.data):
                        yield name, source.name, "", COMPILED
            yield from self._entries(sources, contents.entries)
        except (OSError, ValueError, LinkError, DamagedPayload):
            return

    def _open(self, source: Input) -> Sources:
        data = source.data
        if data is None:
            with Incoming(source.name, pipes=False) as stream:
                data = stream.read(self._left) if stream.size <= self._left else b""
        self._left -= len(data)
        run = Run(data, [source.name], bytes([kind_of(data)]), extent(0, len(data)))
        sources = Sources()
        if run.kinds[0] not in (ARCHIVE, THIN_ARCHIVE):
            sources.add(run)
            return sources
        every = Input(source.name, source.data, whole=True)
        for members in find_members(self._job, every, run[0], set(), self._silent):
            sources.add(members, group=1)
        return sources

    def _entries(self, sources: Sources, entries: bytes) -> Iterator[Definition]:
        """What entries of fat binaries define."""
        rows = list(ENTRY.iter_unpack(entries))
        best: dict[tuple[int, int], tuple[int, str]] = {}
        for number, container, _, kind, arch, _, flags, *_ in rows:
            rank = self._chooser.rank(kind, arch, flags)
            if rank > best.get((number, container), (-1, ""))[0]:
                best[number, container] = rank, entry_word(kind, arch, flags)
        for number, container, _, kind, arch, head, flags, offset, size, packed, full in rows:
            if kind not in (ENTRY_ELF, ENTRY_PTX):
                continue
            source = sources[number]
            view = memoryview(source.arena)[offset + head : offset + head + (packed or size)]
            self._unpacker.reserve(flags, full)
            code = self._unpacker.unpack(view, flags, full, source.name)
            word = entry_word(kind, arch, flags)
            entry = best.get((number, container), (-1, NONE))[1]
            for name in self._defined(code) if kind == ENTRY_ELF else self._declared(code):
                yield name, source.name, word, SAME if entry == word else entry

    def _defined(self, cubin: bytes) -> list[str]:
        """The wanted symbols that a cubin defines for other files."""
        if not any(name in cubin for name in self._texts):
            return []
        _, _, symbols, fault = elfread.parse(cubin, extent(0, len(cubin)))
        if fault:
            return []
        names = (
            text(cubin, symbol.name, symbol.name_size)
            for symbol in symbols
            if symbol.section >= 0 and symbol.info >> 4
        )
        return [name for name in names if name in self._names]

    def _declared(self, ptx: bytes) -> list[str]:
        """The wanted symbols that a PTX text defines for other files."""
        names = (match.decode() for match in _PTX_NAME.findall(ptx))
        return [name for name in names if name in self._names]
