"""Names and places of what a remark speaks of."""

from __future__ import annotations

from pylink.locate.places import places_of
from pylink.remarks.record import section_place
from pylink.tables import entity_name, section_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.results import Merged
    from pylink.remarks.passes.catalogue import Place

# What stands for a section where a remark is about a whole file, as in scripts of linkers.
ALL_SECTIONS = "*"


class View:
    """The inputs of a link as remarks name them."""

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
        self._places: dict[int, Place] = {}

    def name(self, entity: int) -> str:
        return entity_name(self.merged, entity)

    def section_name(self, section: int) -> str:
        return section_name(self.merged.objects, section)

    def file_of_section(self, section: int) -> str:
        return self._lines.name_of(section)

    def at_entity(self, entity: int) -> Place:
        """Where the definition that counts stands, else the first mention."""
        return self.at_symbol(self.entities[entity].winner)

    def at_symbol(self, symbol: int) -> Place:
        """The source line of a definition; its section where no line is known."""
        place = self._places.get(symbol)
        if place is None:
            place = self._places[symbol] = self._find(symbol)
        return place

    def _find(self, symbol: int) -> Place:
        frames = self._lines.definition_frames(symbol, ptx=False)
        # The last one is the function itself, those before are inlined into it. Lines of PTX are in
        # no file.
        if frames and frames[-1].text is None:
            return frames[-1].file, frames[-1].line, frames[-1].column
        row = self.symbols[symbol]
        return self.at_section(row.section) if row.section >= 0 else self.at_file(row.file)

    def at_section(self, section: int) -> Place:
        return section_place(self.file_of_section(section), self.section_name(section))

    def at_file(self, number: int) -> Place:
        return section_place(self.names[number], ALL_SECTIONS)

    @property
    def output(self) -> Place:
        """The linked file, for what concerns all of it."""
        name = self.merged.objects.job.options.subject or self.names[0]
        return section_place(name, ALL_SECTIONS)
