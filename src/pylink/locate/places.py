"""Places in the inputs of a link, by rows of its tables: names, source lines, notes.

    places = places_of(objects)
    places.fill(diagnostic, section, 0xd0, symbol)
    diagnostic.notes.append(places.note_at("referenced-here", section, 0x160, symbol=symbol))

Sections and symbols are row numbers. In a kernel that the link rewrote (sm_100 and later), offsets
are offsets in the rewritten code.
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

    Answer = TypeVar("Answer")


def places_of(objects: Objects) -> Places:
    """Return the object that looks up names and lines in the inputs, cached in `objects.places`."""
    places = objects.places
    if not isinstance(places, Places):
        # Since `objects` refers to its Places, these get a shallow copy of it: a cycle of
        # references would keep the inputs in memory.
        places = objects.places = Places(objects.replace())
    return places


class Places:
    """Looks up names and lines in the inputs of a link; missing or damaged data is not an error."""

    __slots__ = ("_maps", "_objects", "_reported", "_sources")

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._sources = objects.job.source_files()
        self._maps: dict[int, LineMap | None] = {}  # by file; None if its lines cannot be read
        self._reported = False  # whether a note says that pyelftools is missing

    def fill(self, diagnostic: Diagnostic, section: int, offset: int, name: str | None) -> None:
        """Set the place and source line of a diagnostic; `name` is underlined in the line.

        A file that is set already stays.
        """
        diagnostic.section = section_name(self._objects, section)
        diagnostic.offset = offset
        file = self.file_of(section)
        diagnostic.file = diagnostic.file or self._objects.names[file]
        self._set_lines(diagnostic, file, self.frames(section, offset), name)

    def fill_definition(self, diagnostic: Diagnostic, symbol: int) -> None:
        """Set the place of a diagnostic to the definition in a symbol row."""
        objects = self._objects
        row = objects.symbols[symbol]
        diagnostic.file = diagnostic.file or objects.names[row.file]
        if row.section >= 0:
            diagnostic.section = section_name(objects, row.section)
            diagnostic.offset = row.value
        self.fill_lines(diagnostic, symbol)

    def fill_lines(self, diagnostic: Diagnostic, symbol: int) -> None:
        """Set the source line of a diagnostic to the definition or declaration in a symbol row."""
        objects = self._objects
        file = objects.symbols[symbol].file
        name = symbol_name(objects, symbol)
        self._set_lines(diagnostic, file, self.definition_frames(symbol), name)

    def note_at(
        self, kind: str, section: int, offset: int, *, symbol: str, **facts: Fact
    ) -> Diagnostic:
        """Make a note on a place; it names `symbol`, which is underlined in the line."""
        diagnostic = note(kind, source=None, context=(), symbol=symbol, **facts)
        self.fill(diagnostic, section, offset, symbol)
        return diagnostic

    def note_definition(self, kind: str, symbol: int, **facts: Fact) -> Diagnostic:
        """Make a note on the definition in a symbol row."""
        name = symbol_name(self._objects, symbol)
        diagnostic = note(kind, source=None, context=(), symbol=name, **facts)
        self.fill_definition(diagnostic, symbol)
        return diagnostic

    def frames(self, section: int, offset: int) -> list[Frame]:
        """Return the source lines of an offset, the innermost inlined one first."""
        file = self.file_of(section)
        index = section - file_sections(self._objects, file).start
        return self._ask_map(file, lambda lines: lines.frames(index, offset)) or []

    def definition_frames(self, symbol: int, *, ptx: bool = True) -> list[Frame]:
        """Return the source lines of a function's first instruction, or of a variable.

        With `ptx` the line of a variable may be in PTX; the whole text of the PTX is searched.
        """
        objects = self._objects
        row = objects.symbols[symbol]
        if row.info & 15 == STT_FUNC:
            return self.frames(row.section, row.value) if row.section >= 0 else []
        name = symbol_name(objects, symbol)
        return self._declaration(symbol, name, is_defined=row.section >= 0, ptx=ptx)

    def _declaration(self, symbol: int, name: str, *, is_defined: bool, ptx: bool) -> list[Frame]:
        """Return the line of a variable's declaration, which only files of -G record.

        In another file, it is the line of the first use if the file only uses the variable. Else,
        with `ptx`, it is the line of the declaration in PTX. The list is empty if none is found.
        """
        file = self._objects.symbols[symbol].file
        declaration = self._ask_map(file, lambda lines: lines.declaration(name))
        if declaration is not None:
            return [declaration]
        if not is_defined and self._has_lines(file):
            objects = self._objects
            first_symbol = objects.files[file].first_symbol
            sections = file_sections(objects, file)
            for section, offset, index in relocations(objects, sections):
                if index == symbol - first_symbol:
                    return self.frames(section, offset)
        if ptx:
            declaration = self._ask_map(file, lambda lines: lines.ptx_declaration(name))
        return [] if declaration is None else [declaration]

    def _ask_map(self, file: int, question: Callable[[LineMap], Answer]) -> Answer | None:
        """Call `question` with the lines of a file; None if they are missing or damaged."""
        lines = self._map(file)
        try:
            return None if lines is None else question(lines)
        except Exception:  # pyelftools raises any type for damaged data
            self._maps[file] = None
            return None

    def _set_lines(
        self, diagnostic: Diagnostic, file: int, frames: list[Frame], name: str | None
    ) -> None:
        """Set the source line of a diagnostic, or say once that lines cannot be read."""
        if frames:
            set_lines(diagnostic, frames, self._objects.names[file], name, self._sources)
        else:
            self._note_missing_reader(diagnostic, file)

    def _note_missing_reader(self, diagnostic: Diagnostic, file: int) -> None:
        """Add a note, once per link, that pyelftools is needed to show lines."""
        if self._reported or not self._has_lines(file):
            return
        try:
            import elftools  # noqa: F401 -- is it there?
        except ImportError:
            self._reported = True
            diagnostic.context = [note("lines-not-read", file=self._objects.names[file])]

    def _map(self, file: int) -> LineMap | None:
        """Return the lines of a file; None if it has none, or they cannot be read."""
        if file not in self._maps:
            self._maps[file] = self._read_map(file) if self._has_lines(file) else None
        return self._maps[file]

    def _read_map(self, file: int) -> LineMap | None:
        """Read the lines of a file; None without pyelftools, or if they are damaged."""
        try:
            from pylink.locate.linemap import LineMap
        except ImportError:
            return None
        try:
            return LineMap(file_image(self._objects, file))
        except Exception:  # pyelftools raises any type for damaged data
            return None

    def _has_lines(self, file: int) -> bool:
        """Return whether a file has a section of line number programs."""
        return any(
            section_name(self._objects, section) in LINE_SECTIONS
            for section in file_sections(self._objects, file)
        )

    def name_of(self, section: int) -> str:
        """Return the name of the input of a section."""
        return self._objects.names[self.file_of(section)]

    def file_of(self, section: int) -> int:
        """Return the number of the input of a section."""
        return self._objects.sections[section].file


def set_lines(
    diagnostic: Diagnostic, frames: list[Frame], cubin: str, name: str | None, files: SourceFiles
) -> None:
    """Set a diagnostic's line to the innermost line of a place in `cubin`, and add inlined calls.

    The inlined calls are notes of the diagnostic; if it is a note itself, they are its context.
    `name`, if there is one, is underlined in the line, whose text `files` reads.
    """
    diagnostic.source = _make_source(frames[0], cubin, name, files)
    attached = diagnostic.context if diagnostic.original == NOTE else diagnostic.notes
    attached += [
        _note_inlined_call(inner.function, outer, cubin, files)
        for inner, outer in pairwise(frames)
        if inner.function
    ]


def _make_source(frame: Frame, cubin: str, name: str | None, files: SourceFiles) -> Source:
    """Return the source line of a frame, with the columns of `name` if the frame has no column."""
    file = frame.file if frame.text is None else f"{cubin}:{frame.file}"
    source = Source(file, frame.line, frame.column, text=frame.text)
    if name is not None and not frame.column:
        source.column, source.column_end = find_name(name, source, files)
    return source


def _note_inlined_call(function: str, call: Frame, cubin: str, files: SourceFiles) -> Diagnostic:
    """Return a note on the line at which an inlined function was called."""
    from pylink.demangle import demangle

    source = _make_source(call, cubin, function, files)
    return note("inlined-here", source=source, symbol=function, function=demangle(function))
