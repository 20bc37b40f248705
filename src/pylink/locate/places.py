"""Places in the inputs of a link, by rows of its tables: names, source lines, notes.

    places = places_of(objects)
    places.fill(diagnostic, section, 0xd0, symbol)
    diagnostic.notes.append(places.note_at("referenced-here", section, 0x160, symbol=symbol))

Sections and symbols are row numbers. In a kernel that the link rewrote, as it does from sm_100 on,
offsets are those in the rewritten code.
"""

from __future__ import annotations

from itertools import pairwise

from pylink._native.elfheaders import file_image
from pylink.diagnostics.record import Source, note
from pylink.diagnostics.severity import NOTE
from pylink.facts.elf import STT_FUNC
from pylink.locate import LINE_SECTIONS
from pylink.locate.column import find_name
from pylink.locate.references import relocations
from pylink.tables import file_sections, section_name, symbol_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from pylink.diagnostics.record import Diagnostic, Fact
    from pylink.diagnostics.sourcefiles import SourceFiles
    from pylink.locate.linemap import Frame, LineMap
    from pylink.phases.results import Objects

    T = TypeVar("T")


def places_of(objects: Objects) -> Places:
    """The places of the inputs, kept with them: what was read of their lines is used again."""
    places = objects.places
    if not isinstance(places, Places):
        # A second object of the same inputs: a cycle would keep them in memory.
        places = objects.places = Places(objects.replaced())
    return places


class Places:
    """Looks up names and lines; what cannot be found, or read, is unknown and no error."""

    __slots__ = ("_maps", "_objects", "_reported", "_sources")

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._sources = objects.job.source_files()
        self._maps: dict[int, LineMap | None] = {}
        self._reported = False

    def fill(self, diagnostic: Diagnostic, section: int, offset: int, name: str | None) -> None:
        """Give a record its place, and the source line; `name` is what to point at in that."""
        diagnostic.section = section_name(self._objects, section)
        diagnostic.offset = offset
        file = self.file_of(section)
        diagnostic.file = diagnostic.file or self._objects.names[file]
        self._set_lines(diagnostic, file, self.frames(section, offset), name)

    def fill_definition(self, diagnostic: Diagnostic, symbol: int) -> None:
        """Give a record the place of the definition that a symbol row is."""
        objects = self._objects
        row = objects.symbols[symbol]
        diagnostic.file = diagnostic.file or objects.names[row.file]
        if row.section >= 0:
            diagnostic.section = section_name(objects, row.section)
            diagnostic.offset = row.value
        self.fill_lines(diagnostic, symbol)

    def fill_lines(self, diagnostic: Diagnostic, symbol: int) -> None:
        """Give a record the source line of the definition or declaration that a symbol row is."""
        objects = self._objects
        file = objects.symbols[symbol].file
        name = symbol_name(objects, symbol)
        self._set_lines(diagnostic, file, self.definition_frames(symbol), name)

    def note_at(
        self, kind: str, section: int, offset: int, *, symbol: str, **facts: Fact
    ) -> Diagnostic:
        """A note on a place, which names `symbol`."""
        diagnostic = note(kind, source=None, context=(), symbol=symbol, **facts)
        self.fill(diagnostic, section, offset, symbol)
        return diagnostic

    def note_definition(self, kind: str, symbol: int, **facts: Fact) -> Diagnostic:
        """A note on the definition that a symbol row is."""
        name = symbol_name(self._objects, symbol)
        diagnostic = note(kind, source=None, context=(), symbol=name, **facts)
        self.fill_definition(diagnostic, symbol)
        return diagnostic

    def frames(self, section: int, offset: int) -> list[Frame]:
        """The source lines of an offset, the innermost inlined one first."""
        file = self.file_of(section)
        index = section - file_sections(self._objects, file).start
        return self._ask(file, lambda lines: lines.frames(index, offset)) or []

    def definition_frames(self, symbol: int, *, ptx: bool = True) -> list[Frame]:
        """The source lines of the first instruction of a function, the line of a variable.

        Without `ptx` a variable has no line of the PTX that a cubin holds: finding one takes a
        search of all of it.
        """
        objects = self._objects
        row = objects.symbols[symbol]
        if row.info & 15 == STT_FUNC:
            return self.frames(row.section, row.value) if row.section >= 0 else []
        name = symbol_name(objects, symbol)
        return self._declaration(symbol, name, is_defined=row.section >= 0, ptx=ptx)

    def _declaration(self, symbol: int, name: str, *, is_defined: bool, ptx: bool) -> list[Frame]:
        """The line of a variable: only -G records it, so the next best in other files.

        That is the first use of one that is not defined in its file, or a line of PTX.
        """
        file = self._objects.symbols[symbol].file
        declaration = self._ask(file, lambda lines: lines.declaration(name))
        if declaration is not None:
            return [declaration]
        if not is_defined and self._has_lines(file):
            objects = self._objects
            first = objects.files[file].first_symbol
            sections = file_sections(objects, file)
            for section, offset, index in relocations(objects, sections):
                if index == symbol - first:
                    return self.frames(section, offset)
        declaration = self._ask(file, lambda lines: lines.ptx_declaration(name)) if ptx else None
        return [] if declaration is None else [declaration]

    def _ask(self, file: int, question: Callable[[LineMap], T]) -> T | None:
        """What the lines of a file answer; None where there are none, or they are damaged."""
        lines = self._map(file)
        try:
            return None if lines is None else question(lines)
        except Exception:  # what pyelftools raises for damaged data is of any kind
            self._maps[file] = None
            return None

    def _set_lines(
        self, diagnostic: Diagnostic, file: int, frames: list[Frame], name: str | None
    ) -> None:
        if frames:
            set_lines(diagnostic, frames, self._objects.names[file], name, self._sources)
        else:
            self._tell_of_extra(diagnostic, file)

    def _tell_of_extra(self, diagnostic: Diagnostic, file: int) -> None:
        """Say once that lines could be shown, were there a reader."""
        if self._reported or not self._has_lines(file):
            return
        try:
            import elftools  # noqa: F401 -- is it there?
        except ImportError:
            self._reported = True
            diagnostic.context = [note("lines-not-read", file=self._objects.names[file])]

    def _map(self, file: int) -> LineMap | None:
        if file not in self._maps:
            self._maps[file] = self._read_map(file) if self._has_lines(file) else None
        return self._maps[file]

    def _read_map(self, file: int) -> LineMap | None:
        try:
            from pylink.locate.linemap import LineMap
        except ImportError:
            return None
        try:
            return LineMap(file_image(self._objects, file))
        except Exception:  # as in `_ask`
            return None

    def _has_lines(self, file: int) -> bool:
        return any(
            section_name(self._objects, section) in LINE_SECTIONS
            for section in file_sections(self._objects, file)
        )

    def name_of(self, section: int) -> str:
        """The name of the input that a section is from."""
        return self._objects.names[self.file_of(section)]

    def file_of(self, section: int) -> int:
        """The number of the input that a section is from."""
        return self._objects.sections[section].file


def set_lines(
    diagnostic: Diagnostic, frames: list[Frame], cubin: str, name: str | None, files: SourceFiles
) -> None:
    """Give a record the innermost line of a place in `cubin`, and the calls it is inlined for.

    These come before other notes; a note has no notes of its own, but a context. `name` is pointed
    at in lines of `files`.
    """
    diagnostic.source = _source(frames[0], cubin, name, files)
    below = diagnostic.context if diagnostic.original == NOTE else diagnostic.notes
    below += [
        _inlined(inner.function, outer, cubin, files)
        for inner, outer in pairwise(frames)
        if inner.function
    ]


def _source(frame: Frame, cubin: str, name: str | None, files: SourceFiles) -> Source:
    file = frame.file if frame.text is None else f"{cubin}:{frame.file}"
    source = Source(file, frame.line, frame.column, text=frame.text)
    if name is not None and not frame.column:
        source.column, source.column_end = find_name(name, source, files)
    return source


def _inlined(function: str, call: Frame, cubin: str, files: SourceFiles) -> Diagnostic:
    from pylink.demangle import demangle

    source = _source(call, cubin, function, files)
    return note("inlined-here", source=source, symbol=function, function=demangle(function))
