"""Finds definitions of undefined names in code that a link could have taken but did not.

Such code is for another architecture, PTX in archives, or in other files that -l could have found.
All files are opened again, only if a link fails.
"""

from __future__ import annotations

import re

from pylink._native import elfread
from pylink.diagnostics.errors import LinkError
from pylink.diagnostics.policy import Policy
from pylink.diagnostics.record import note
from pylink.diagnostics.sink import Sink
from pylink.diagnostics.stream import to_bytes
from pylink.facts.elf import STB_LOCAL
from pylink.facts.inputkinds import ARCHIVE, CUBIN, PTX, THIN_ARCHIVE
from pylink.facts.picknumbers import EntryKind
from pylink.files.reading import Incoming
from pylink.inputs.choice import Chooser
from pylink.inputs.expansion import find_members
from pylink.inputs.hostobjects import code_name, scan
from pylink.inputs.kinds import kind_of
from pylink.inputs.libraries import find_hidden
from pylink.inputs.payload import DamagedPayload, Unpacker
from pylink.inputs.sources import SourceBatch, Sources
from pylink.options.model import Input
from pylink.rowformats import ENTRY
from pylink.tables import extent, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import TypeAlias

    from pylink.diagnostics.record import Diagnostic
    from pylink.phases.init import Job

    # A name, the file that defines it, the architecture of its code ("" outside of fat binaries),
    # and the code that the link took instead: a text such as "sm_80" or a special value below.
    Definition: TypeAlias = tuple[str, str, str, str]

# Most notes on one name, and most bytes that are searched: this number of files' bytes, and as many
# again of decompressed payloads. What exceeds a limit is ignored.
MOST_NOTES = 3
MOST_BYTES = 1 << 28

# Special values of the code that the link took. NO_CODE: nothing from the container. SAME_CODE: the
# code that has the definition. ARCHIVED_PTX: nothing, since PTX in archives is not compiled.
NO_CODE, SAME_CODE, ARCHIVED_PTX = "", "same", "compiled"

# A global definition in PTX, up to its name and the next character, with which parameters, a size,
# a value or a body begin.
_PTX_NAME = re.compile(rb"\.(?:visible|weak)\s[^;{}=]*?(?<![.\w$])([A-Za-z_$%][\w$]*)\s*[\[(;={]")


def find_unlinked(job: Job, undefined: Collection[str]) -> dict[str, list[Diagnostic]]:
    """Return, by undefined symbol, up to MOST_NOTES notes on files that define it.

    The notes say why the definition was not linked, and what to do.
    """
    search = _Search(job, undefined)
    diagnostics: dict[str, list[Diagnostic]] = {}

    def add(name: str, hint: Diagnostic) -> None:
        if len(diagnostics.setdefault(name, [])) < MOST_NOTES:
            diagnostics[name].append(hint)

    for source in job.inputs:
        archs_of: dict[tuple[str, str, str], list[str]] = {}  # by name, file and code taken
        for name, file, arch, code_taken in search.definitions(source):
            archs_of.setdefault((name, file, code_taken), []).append(arch)
        for (name, file, code_taken), archs in archs_of.items():
            hint = _note_reason(job, name, file, code_taken, ", ".join(dict.fromkeys(archs)))
            if hint is not None:
                add(name, hint)
    for library, other, path in find_hidden(job.options):
        for name, file in {row[:2]: None for row in search.definitions(Input(path))}:
            kind = "in-other-library"
            add(name, note(kind, symbol=name, file=file, library=library, other=other))
    return diagnostics


def _note_reason(job: Job, name: str, file: str, code_taken: str, archs: str) -> Diagnostic | None:
    """Return a note that explains why a definition in an input was not linked.

    `archs` lists the architectures of the code that defines it. None if another diagnostic of the
    link explains it.
    """
    arch = job.options.arch
    if code_taken == NO_CODE:
        return note("in-other-arch", symbol=name, file=file, archs=archs, arch=arch)
    if code_taken == ARCHIVED_PTX:
        return note("in-archived-ptx", symbol=name, file=file)
    if code_taken == SAME_CODE:  # the link's diagnostic on the file tells more
        return None
    return note("in-other-entry", symbol=name, file=file, archs=archs, linked=code_taken)


class _Search:
    """Searches files for definitions of the undefined names, up to a limit of bytes."""

    def __init__(self, job: Job, undefined: Collection[str]) -> None:
        self._job = job
        self._names = undefined
        self._texts = [to_bytes(name) for name in undefined]
        self._chooser = Chooser(job.target, optimizes=job.optimizes)
        self._silent_sink = Sink(policy=Policy())
        self._unpacker = Unpacker(MOST_BYTES, 0, self._silent_sink)
        self._bytes_left = MOST_BYTES

    def definitions(self, input_file: Input) -> Iterator[Definition]:
        """Yield an input's definitions of the undefined names, up to an error in reading it."""
        try:
            sources = self._open(input_file)
            contents, _ = scan(sources)
            for number, kind in enumerate(sources.kinds):
                source = sources[number]
                if kind == CUBIN:
                    for name in self._symbols_in_cubin(source.data):
                        yield name, source.name, "", SAME_CODE
                elif kind == PTX and sources.group(number) and not input_file.whole_archive:
                    for name in self._symbols_in_ptx(source.data):
                        yield name, source.name, "", ARCHIVED_PTX
            yield from self._entry_definitions(sources, contents.entries)
        except (OSError, ValueError, LinkError, DamagedPayload):
            return

    def _open(self, source: Input) -> Sources:
        """Return the file, or an archive's members; no bytes of a file on disk beyond the limit."""
        data = source.data
        if data is None:
            with Incoming(source.name, pipes=False) as stream:
                data = stream.read(self._bytes_left) if stream.size <= self._bytes_left else b""
        self._bytes_left -= len(data)
        batch = SourceBatch(data, [source.name], bytes([kind_of(data)]), extent(0, len(data)))
        sources = Sources()
        if batch.kinds[0] not in (ARCHIVE, THIN_ARCHIVE):
            sources.add(batch)
            return sources
        whole_input = Input(source.name, source.data, whole_archive=True)
        for members in find_members(self._job, whole_input, batch[0], set(), self._silent_sink):
            sources.add(members, group=1)
        return sources

    def _entry_definitions(self, sources: Sources, entries: bytes) -> Iterator[Definition]:
        """Yield definitions in `entries`: packed rows (ENTRY) of the fat binaries in `sources`."""
        rows = list(ENTRY.iter_unpack(entries))
        # By source and container: rank and name of the code that the link took.
        best: dict[tuple[int, int], tuple[int, str]] = {}
        for number, container, _, kind, arch, _, flags, *_ in rows:
            rank = self._chooser.rank(kind, arch, flags)
            if rank > best.get((number, container), (-1, ""))[0]:
                best[number, container] = rank, code_name(kind, arch, flags)
        for (
            number,
            container,
            _,
            kind,
            arch,
            head,
            flags,
            offset,
            size,
            packed_size,
            full_size,
        ) in rows:
            if kind not in (EntryKind.ELF, EntryKind.PTX):
                continue
            source = sources[number]
            start = offset + head
            view = memoryview(source.arena)[start : start + (packed_size or size)]
            self._unpacker.reserve(flags, full_size)
            code = self._unpacker.unpack(view, flags, full_size, source.name)
            code_title = code_name(kind, arch, flags)
            _, best_title = best.get((number, container), (-1, NO_CODE))
            code_taken = SAME_CODE if best_title == code_title else best_title
            for name in (
                self._symbols_in_cubin(code)
                if kind == EntryKind.ELF
                else self._symbols_in_ptx(code)
            ):
                yield name, source.name, code_title, code_taken

    def _symbols_in_cubin(self, cubin: bytes) -> list[str]:
        """Return the undefined names that a cubin defines as global symbols."""
        if not any(name in cubin for name in self._texts):
            return []
        _, _, symbols, fault = elfread.parse(cubin, extent(0, len(cubin)))
        if fault:
            return []
        names = (
            text(cubin, symbol.name, symbol.name_size)
            for symbol in symbols
            if symbol.section >= 0 and symbol.info >> 4 != STB_LOCAL
        )
        return [name for name in names if name in self._names]

    def _symbols_in_ptx(self, ptx: bytes) -> list[str]:
        """Return the undefined names that a PTX text defines as global symbols."""
        names = (match.decode() for match in _PTX_NAME.findall(ptx))
        return [name for name in names if name in self._names]
