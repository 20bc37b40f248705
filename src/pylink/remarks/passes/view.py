"""Names and locations of the subjects of remarks."""

from __future__ import annotations

from pylink.locate.places import places_of
from pylink.remarks.record import section_place
from pylink.tables import entity_name, section_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.results import Merged
    from pylink.remarks.passes.catalogue import Place

# The section name in locations of a complete file, as in linker scripts.
ALL_SECTIONS = "*"


class View:
    """Names and locations of a link's inputs, as remarks show them.

    Methods take row numbers of entities, sections, symbols and files. `names` are the file names.
    """

    __slots__ = ("_lines", "_places", "arena", "entities", "merged", "names", "sections", "symbols")

    def __init__(self, merged: Merged) -> None:
        objects = merged.objects
        self.merged = merged
        self.arena = objects.arena
        self.names = objects.names
        self.sections = objects.sections
        self.symbols = objects.symbols
        self.entities = merged.entities
        self._lines = places_of(objects)
        self._places: dict[int, Place] = {}  # results of `at_symbol`

    def name(self, entity: int) -> str:
        return entity_name(self.merged, entity)

    def section_name(self, section: int) -> str:
        return section_name(self.merged.objects, section)

    def file_of_section(self, section: int) -> str:
        """Return the name of the input that has the section."""
        return self._lines.name_of(section)

    def at_entity(self, entity: int) -> Place:
        """Return the location of the definition that is linked, or of the first mention if none."""
        return self.at_symbol(self.entities[entity].winner)

    def at_symbol(self, symbol: int) -> Place:
        """Return the source line of a symbol's definition, or else its section or file."""
        place = self._places.get(symbol)
        if place is None:
            place = self._places[symbol] = self._find(symbol)
        return place

    def _find(self, symbol: int) -> Place:
        """Return the line that defines a symbol, or else its section or file."""
        frames = self._lines.definition_frames(symbol, ptx=False)
        # The last frame is the function itself; earlier ones are inlined into it. A frame with
        # text is a line of PTX, which is in no file.
        if frames and frames[-1].text is None:
            return frames[-1].file, frames[-1].line, frames[-1].column
        row = self.symbols[symbol]
        return self.at_section(row.section) if row.section >= 0 else self.at_file(row.file)

    def at_section(self, section: int) -> Place:
        """Return the place of an input section in its file."""
        return section_place(self.file_of_section(section), self.section_name(section))

    def at_file(self, number: int) -> Place:
        """Return the place of an input as a whole, by its number."""
        return section_place(self.names[number], ALL_SECTIONS)

    @property
    def output(self) -> Place:
        """The location for remarks on the output as a whole: its name, or else the first input."""
        name = self.merged.objects.job.options.subject or self.names[0]
        return section_place(name, ALL_SECTIONS)
