"""Which entry of a fat binary is linked for a target.

The entry for the highest architecture that the target runs; of one architecture machine code
before PTX, and code for one chip (suffix `a`) before code for its family (`f`) before code for all
that follow; then the first. From 13.1 on a target without the suffix `a` does not run code with it.
docs/inputs.md has the experiments.
"""

from __future__ import annotations

from pylink.facts.target import ARCHITECTURES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.facts.target import Target

# Kinds of entries.
ENTRY_PTX = 1
ENTRY_ELF = 2
ENTRY_LTOIR = 8

# Bits of an entry's flags.
WIDE = 0x1  # addresses have 64 bits
CHIP = 0x100000  # suffix `a`
FAMILY = 0x200000  # suffix `f`
COMPATIBLE = 0x1000000  # the header says which features the code needs
SUFFIXES = CHIP | FAMILY

# Machine code without that word runs on its own architecture and, by name, on these.
ALWAYS_COMPATIBLE = ((120, 121),)


class Chooser:
    """Ranks entries for one target.

    `optimizes` prefers LTO-IR to all else, and `parts` keeps machine code for one chip from targets
    without the suffix `a`. `depends` is set when an entry was ranked that `parts` would refuse.
    """

    __slots__ = ("_optimizes", "_parts", "_ranks", "_target", "depends")

    def __init__(self, target: Target, *, optimizes: bool, parts: bool = False) -> None:
        self._target = target
        self._optimizes = optimizes
        self._parts = parts
        self.depends = False
        self._ranks: dict[tuple[int, int, int], int] = {}

    def rank(self, kind: int, sm: int, flags: int) -> int:
        """The place of such an entry, the highest is the best; -1 for one that cannot be used."""
        flags &= WIDE | SUFFIXES | COMPATIBLE
        key = (kind, sm, flags)
        known = self._ranks.get(key)
        if known is None:
            known = self._ranks[key] = self._rank(kind, sm, flags)
        return known

    def _rank(self, kind: int, sm: int, flags: int) -> int:
        if not flags & WIDE:
            return -1
        suffix = 2 if flags & CHIP else 1 if flags & FAMILY else 0
        if kind == ENTRY_ELF:
            return sm << 4 | 4 | suffix if self._runs(sm, flags) else -1
        if kind == ENTRY_PTX:
            return sm << 4 | suffix if self._compiles(sm, flags) else -1
        if kind == ENTRY_LTOIR and self._compiles(sm, flags):
            # Without optimization only what nothing else stands for.
            return sm << 4 | suffix | 1 << 24 if self._optimizes else 0
        return -1

    def _runs(self, sm: int, flags: int) -> bool:
        target = self._target
        if sm == target.sm:
            if flags & CHIP and not target.specific:
                self.depends = True
                return not self._parts
            return True
        if sm >= 100 and not flags & COMPATIBLE and (sm, target.sm) not in ALWAYS_COMPATIBLE:
            return False
        return target.accepts(sm, bool(flags & CHIP))

    def _compiles(self, sm: int, flags: int) -> bool:
        target = self._target
        if flags & CHIP:
            return sm == target.sm and target.specific
        if flags & FAMILY:
            return target.sm in (ARCHITECTURES[sm].related if sm in ARCHITECTURES else (sm,))
        return sm <= target.sm
