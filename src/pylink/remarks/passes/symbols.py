"""Pass symbol-resolution: which of several definitions of one name was kept, and why.

The tables record for each definition whether it was kept, lost against an earlier one, or was
replaced by a later one. The reason follows from the kinds of the definitions.
"""

from __future__ import annotations

from struct import unpack_from

from pylink.facts import sectionkinds
from pylink.facts.attributes import REGCOUNT, SVAL
from pylink.facts.elf import SHN_COMMON, STB_WEAK, STT_FUNC
from pylink.facts.rownumbers import Resolution
from pylink.remarks.passes.catalogue import (
    COMMON_DROPPED,
    COMMON_MERGED,
    COMMON_REPLACED,
    STRONG_OVER_WEAK,
    WEAK_KEPT,
    WEAK_OUTDATED,
    WEAK_REPLACED,
    WEAK_VARIABLE_KEPT,
    At,
    Kind,
)
from pylink.remarks.passes.view import View
from pylink.tables import file_sections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.results import Merged
    from pylink.remarks import Remarks
    from pylink.rows import SymbolRow

# Bytes of the header of an attribute record: the format of the value (`form`), the attribute, and
# either the size of the value that follows or a value of at most 16 bits.
HEADER_SIZE = 4


def emit(merged: Merged, remarks: Remarks) -> None:
    """Emit a remark for each definition that was dropped for another of the same name."""
    ResolutionPass(merged, remarks).run()


class Definition:
    """One definition: the row of its symbol, and the properties that decide.

    `file` is the file's number, `size` in bytes. `common`, `function`, `lost` (against an earlier
    definition) and `weak` are true or false.
    """

    __slots__ = ("common", "file", "function", "lost", "size", "symbol", "weak")

    def __init__(self, symbol: int, row: SymbolRow, resolution: int) -> None:
        self.size = row.size
        self.file = row.file
        self.symbol = symbol
        self.lost = resolution in (Resolution.LOST, Resolution.LOST_EARLY)
        self.common = row.shndx == SHN_COMMON
        self.function = row.info & 15 == STT_FUNC
        self.weak = row.info >> 4 == STB_WEAK


class ResolutionPass:
    """Emits a remark for each definition that was dropped, with the one that was kept.

    `facts` caches the results of `_read_facts` by number of the file.
    """

    def __init__(self, merged: Merged, remarks: Remarks) -> None:
        self.merged = merged
        self.view = View(merged)
        self.remarks = remarks
        self.facts: dict[int, tuple[dict[int, int], int]] = {}

    def run(self) -> None:
        """Emit the remarks of each symbol with several definitions, which are in input order."""
        for entity, definitions in self._contested().items():
            current = definitions[0]
            merged = current.size  # bytes of the merged common symbol up to here
            for later in definitions[1:]:
                if later.lost and later.common and current.common:
                    saved = min(merged, later.size)
                    merged = max(merged, later.size)
                    self._emit(
                        COMMON_MERGED,
                        entity,
                        later,
                        saved,
                        Size=later.size,
                        Winner=current,
                        Merged=merged,
                    )
                elif later.lost:
                    self._emit_lost(entity, later, current)
                else:
                    self._emit_replaced(entity, current, merged, later)
                    current = later

    def _contested(self) -> dict[int, list[Definition]]:
        """Return, by entity (a symbol of the link), its definitions in order of the inputs.

        Only entities with several definitions are in the result.
        """
        first: dict[int, Definition] = {}  # the first definition of each entity
        contested: dict[int, list[Definition]] = {}
        merged = self.merged
        table = zip(merged.symbol_entity, self.view.symbols, merged.symbol_resolution, strict=True)
        for symbol, (entity, row, resolution) in enumerate(table):
            if entity < 0 or not resolution:  # undefined symbols have no resolution
                continue
            definition = Definition(symbol, row, resolution)
            if entity not in first:
                first[entity] = definition
            else:
                contested.setdefault(entity, [first[entity]]).append(definition)
        return contested

    def _emit_lost(self, entity: int, lost: Definition, winner: Definition) -> None:
        """Emit the remark for a definition that lost against an earlier one."""
        if lost.common:
            self._emit(COMMON_DROPPED, entity, lost, Size=lost.size, Winner=winner)
        elif not winner.weak:
            self._emit(STRONG_OVER_WEAK, entity, lost, Winner=winner)
        elif not winner.function:
            self._emit(WEAK_VARIABLE_KEPT, entity, lost, Winner=winner)
        else:
            registers, needed = self._registers(lost), self._registers(winner)
            self._emit(WEAK_KEPT, entity, lost, Winner=winner, Registers=registers, Needed=needed)

    def _emit_replaced(self, entity: int, old: Definition, merged: int, winner: Definition) -> None:
        """Emit the remark for a definition that a later one replaced.

        A common symbol has `merged` bytes then, the largest size of all that were merged with it.
        """
        if old.common:
            self._emit(COMMON_REPLACED, entity, old, merged, Size=merged, Winner=winner)
            return
        if not winner.weak:
            self._emit(STRONG_OVER_WEAK, entity, old, Winner=winner)
            return
        registers, needed = self._registers(old), self._registers(winner)
        if needed < registers:
            self._emit(
                WEAK_REPLACED, entity, old, Winner=winner, Registers=registers, Needed=needed
            )
        else:
            older, newer = self._facts(old.file)[1], self._facts(winner.file)[1]
            self._emit(WEAK_OUTDATED, entity, old, Winner=winner, Virtual=older, Newer=newer)

    def _emit(
        self,
        kind: Kind,
        entity: int,
        dropped: Definition,
        hotness: int | None = None,
        **values: int | Definition,
    ) -> None:
        """Emit a remark at the dropped definition; the default hotness is its size.

        `values` are the arguments of the message. A definition among them is written as the name
        of its file.
        """
        texts = {
            key: self._file(value) if isinstance(value, Definition) else value
            for key, value in values.items()
        }
        place = self.view.at_symbol(dropped.symbol)
        if hotness is None:
            hotness = dropped.size
        self.remarks.emit(kind(self.view.name(entity), place, hotness, **texts))

    def _file(self, definition: Definition) -> At:
        """Return the name of the file of a definition, with the definition's location."""
        place = self.view.at_symbol(definition.symbol)
        return At(self.view.names[definition.file], place)

    def _registers(self, definition: Definition) -> int:
        """Return the register count of a function; 0 if its file does not say."""
        return self._facts(definition.file)[0].get(definition.symbol, 0)

    def _facts(self, file: int) -> tuple[dict[int, int], int]:
        """Return the result of `_read_facts` for a file, which is read only once."""
        facts = self.facts.get(file)
        if facts is None:
            facts = self.facts[file] = self._read_facts(file)
        return facts

    def _read_facts(self, file: int) -> tuple[dict[int, int], int]:
        """Return the register counts of a file's functions, and the SM number of its PTX.

        The counts are by row of the function's symbol in the link's table of symbols.
        """
        objects = self.merged.objects
        row = objects.files[file]
        first, virtual_sm = row.first_symbol, row.ptx_sm
        counts = {}
        for number in file_sections(objects, file):
            section = objects.sections[number]
            position, end = section.offset, section.offset + section.size
            if section.kind != sectionkinds.INFO:
                continue
            while position < end:  # the read phase has checked the records
                form, attribute, size = unpack_from("<BBH", self.view.arena, position)
                position += HEADER_SIZE
                if form == SVAL:
                    if attribute == REGCOUNT:
                        symbol, registers = unpack_from("<II", self.view.arena, position)
                        counts[first + symbol] = registers
                    position += size
        return counts, virtual_sm
