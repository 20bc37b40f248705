"""Names and places of the sections of the output."""

from __future__ import annotations

from struct import iter_unpack

from pylink.remarks.passes.view import View
from pylink.tables import OUT, PLACE, string
from pylink.tables import rows as table_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.phases.layout import Placed
    from pylink.remarks.passes.catalogue import Place


class Outputs:
    """The OutRows of a link whose layout is known; `index` is the section number, 0 for none."""

    __slots__ = ("index", "placed", "rows", "view")

    def __init__(self, placed: Placed) -> None:
        self.placed = placed
        self.view = View(placed.merged)
        self.rows = list(table_rows(placed.outs, OUT))
        self.index = [number for (number,) in iter_unpack("<i", placed.section_index)]

    def name(self, out: int) -> str:
        place = PLACE.unpack_from(self.placed.places, out * PLACE.size)
        return string(self.placed.shstrtab, place[2])

    def size(self, out: int) -> int:
        """Bytes in the file."""
        size: int = PLACE.unpack_from(self.placed.places, out * PLACE.size)[1]
        return size

    def made(self, out: int) -> int:
        """PlaceRow.made: whose bytes the section has."""
        made: int = PLACE.unpack_from(self.placed.places, out * PLACE.size)[3]
        return made

    def place(self, out: int) -> Place:
        """The input that the section was born for; the output for what the link makes."""
        row = self.rows[out]
        if row[9] >= 0:
            return self.view.at_entity(row[9])
        return self.view.at_section(row[20]) if row[20] >= 0 else self.view.output

    def ordered(self, keys: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Pairs of a section and a number, in file order."""
        return sorted(keys, key=lambda key: (self.index[key[0]], key))
