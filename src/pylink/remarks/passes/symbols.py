"""Pass symbol-resolution: which of several definitions of one name stayed, and for what reason.

The tables say which definition won in the end. The decisions on the way there are made again here,
definition by definition, as `pylink._native.resolve` made them.
"""

from __future__ import annotations

from struct import iter_unpack, unpack_from

from pylink.remarks.passes.catalogue import (
    COMMON_DROPPED,
    COMMON_MERGED,
    COMMON_REPLACED,
    STRONG_OVER_WEAK,
    WEAK_KEPT,
    WEAK_REPLACED,
    WEAK_VARIABLE_KEPT,
    At,
    Kind,
)
from pylink.remarks.passes.view import View
from pylink.sections import rules
from pylink.tables import ENTITY, FILE, LOCAL, SECTION, SYMBOL, rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.merge import Merged
    from pylink.remarks import Remarks

STB_WEAK = 2
STT_FUNC = 2
SHN_COMMON = 0xFFF2
EIATTR_REGCOUNT = 0x2F
HEADER_SIZE = 4
SIZED = 4  # format of an attribute record whose value has a size


def emit(merged: Merged, remarks: Remarks) -> None:
    ResolutionPass(merged, remarks).run()


class Definition:
    """One definition: the row of its symbol, and what the decision looks at."""

    __slots__ = ("common", "file", "function", "size", "symbol", "weak")

    def __init__(self, symbol: int, fields: tuple[int, ...]) -> None:
        _, _, self.size, _, _, self.file, _, shndx, info, _ = fields
        self.symbol = symbol
        self.common = shndx == SHN_COMMON
        self.function = info & 15 == STT_FUNC
        self.weak = info >> 4 == STB_WEAK


class ResolutionPass:
    """`registers` has the register counts of each file that was asked for."""

    def __init__(self, merged: Merged, remarks: Remarks) -> None:
        self.merged = merged
        self.view = View(merged)
        self.remarks = remarks
        self.registers: dict[int, dict[int, int]] = {}

    def run(self) -> None:
        for entity, definitions in self._contested().items():
            current = definitions[0]
            merged = current.size  # what common symbols of the name have grown to
            for later in definitions[1:]:
                if later.common and current.common:
                    saved = min(merged, later.size)
                    merged = max(merged, later.size)
                    self._tell(
                        COMMON_MERGED,
                        entity,
                        later,
                        saved,
                        Size=later.size,
                        Winner=current,
                        Merged=merged,
                    )
                elif later.common:
                    self._tell(COMMON_DROPPED, entity, later, Size=later.size, Winner=current)
                elif current.common:
                    self._tell(COMMON_REPLACED, entity, current, Size=merged, Winner=later)
                    current = later
                else:
                    current = self._choose(entity, current, later)

    def _contested(self) -> dict[int, list[Definition]]:
        """The definitions of every name that has several, in order, by entity."""
        first: dict[int, Definition] = {}
        found: dict[int, list[Definition]] = {}
        numbers = iter_unpack("<i", self.merged.symbol_entity)
        symbols = rows(self.view.symbols, SYMBOL)
        local = [row[3] & LOCAL for row in rows(self.merged.entities, ENTITY)]
        for symbol, ((entity,), fields) in enumerate(zip(numbers, symbols, strict=True)):
            # Undefined: in no section, and not common.
            if entity < 0 or local[entity] or (fields[6] < 0 and fields[7] != SHN_COMMON):
                continue
            definition = Definition(symbol, fields)
            if entity not in first:
                first[entity] = definition
            else:
                found.setdefault(entity, [first[entity]]).append(definition)
        return found

    def _choose(self, entity: int, current: Definition, later: Definition) -> Definition:
        """Tell which of two definitions stays; the one that does."""
        if not current.weak:
            self._tell(STRONG_OVER_WEAK, entity, later, Winner=current)
            return current
        if not later.weak:
            self._tell(STRONG_OVER_WEAK, entity, current, Winner=later)
            return later
        if not current.function:
            self._tell(WEAK_VARIABLE_KEPT, entity, later, Winner=current)
            return current
        ours, theirs = self._registers(current), self._registers(later)
        if theirs < ours:
            self._tell(WEAK_REPLACED, entity, current, Winner=later, Registers=ours, Needed=theirs)
            return later
        self._tell(WEAK_KEPT, entity, later, Winner=current, Registers=theirs, Needed=ours)
        return current

    def _tell(
        self,
        kind: Kind,
        entity: int,
        dropped: Definition,
        hotness: int | None = None,
        **values: int | Definition,
    ) -> None:
        """A remark at the definition that does not stay, which is as hot as it is large."""
        shown = {
            key: self._file(value) if isinstance(value, Definition) else value
            for key, value in values.items()
        }
        place = self.view.at_symbol(dropped.symbol)
        if hotness is None:
            hotness = dropped.size
        self.remarks.emit(kind(self.view.name(entity), place, hotness, **shown))

    def _file(self, definition: Definition) -> At:
        place = self.view.at_symbol(definition.symbol)
        return At(self.view.names[definition.file], place)

    def _registers(self, definition: Definition) -> int:
        counts = self.registers.get(definition.file)
        if counts is None:
            counts = self.registers[definition.file] = self._read_counts(definition.file)
        return counts.get(definition.symbol, 0)

    def _read_counts(self, file: int) -> dict[int, int]:
        """REGCOUNT of each function of a file, by the row of its symbol; checked when read."""
        row = FILE.unpack_from(self.merged.objects.files, file * FILE.size)
        counts = {}
        for number in range(row[2], row[2] + row[3]):
            fields = SECTION.unpack_from(self.view.sections, number * SECTION.size)
            if fields[12] != rules.INFO:
                continue
            at, end = fields[1], fields[1] + fields[2]
            while at < end:
                form, attribute, size = unpack_from("<BBH", self.view.arena, at)
                at += HEADER_SIZE
                if form == SIZED:
                    if attribute == EIATTR_REGCOUNT:
                        symbol, registers = unpack_from("<II", self.view.arena, at)
                        counts[row[4] + symbol] = registers
                    at += size
        return counts
