"""Names and locations of output sections."""

from __future__ import annotations

from pylink.remarks.passes.view import View
from pylink.tables import string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.phases.results import Placed
    from pylink.remarks.passes.catalogue import Place


class Outputs:
    """The output sections of a finished layout.

    Methods take `out`, the row number of an output section in `rows`. `index` has, by row, the
    number of the section in the output file, 0 if it is not written.
    """

    __slots__ = ("index", "placed", "rows", "view")

    def __init__(self, placed: Placed) -> None:
        self.placed = placed
        self.view = View(placed.merged)
        self.rows = placed.outs
        self.index = placed.section_index

    def name(self, out: int) -> str:
        return string(self.placed.shstrtab, self.placed.places[out].name)

    def size(self, out: int) -> int:
        """Return the size in the file in bytes."""
        return self.placed.places[out].size

    def contents(self, out: int) -> int:
        """Return the origin of the section's bytes: a value of `ContentsFrom`."""
        return self.placed.places[out].contents

    def place(self, out: int) -> Place:
        """Return the location of the function or input section that the section was created for.

        It is the output file for a section that no input caused.
        """
        row = self.rows[out]
        if row.entity >= 0:
            return self.view.at_entity(row.entity)
        return self.view.at_section(row.source) if row.source >= 0 else self.view.output

    def ordered(self, keys: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return `keys`, each an output section and another number, in the order of the file.

        Pairs of one section are sorted by the other number.
        """
        return sorted(keys, key=lambda key: (self.index[key[0]], key))
