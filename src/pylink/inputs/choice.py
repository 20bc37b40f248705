"""Chooses the entry of a fat binary that is linked for a target.

It is the entry for the highest architecture that the target runs. For one architecture, machine
code is preferred to PTX, and code for one chip (suffix `a`) to code for its family (`f`) and to
code for all later chips; of equal entries the first counts. From 13.1 on a target without the
suffix `a` does not run code with it. docs/inputs.md has the experiments.
"""

from __future__ import annotations

from pylink.facts.fatbinentries import (
    FLAG_64_BIT,
    FLAG_CHIP,
    FLAG_COMPATIBLE,
    FLAG_FAMILY,
    FLAGS_OF_SUFFIXES,
)
from pylink.facts.picknumbers import EntryKind
from pylink.facts.target import ARCHITECTURES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.facts.target import Target

# Pairs of SM numbers: of code, and of a target that runs it even without FLAG_COMPATIBLE. Other
# code from sm_100 on without this flag runs only on its own architecture.
ALWAYS_COMPATIBLE = ((120, 121),)


class Chooser:
    """Ranks the entries of fat binaries for one target.

    `optimizes` prefers LTO-IR to all else. With `parts_accelerated`, as from 13.1 on, a target
    without the suffix `a` does not take accelerated code, i.e. machine code with this suffix.
    `met_accelerated` is True once an entry was ranked that such a target does not take, even if
    `parts_accelerated` is not set.
    """

    __slots__ = ("_optimizes", "_parts_accelerated", "_ranks", "_target", "met_accelerated")

    def __init__(self, target: Target, *, optimizes: bool, parts_accelerated: bool = False) -> None:
        self._target = target
        self._optimizes = optimizes
        self._parts_accelerated = parts_accelerated
        self.met_accelerated = False
        self._ranks: dict[tuple[int, int, int], int] = {}

    def rank(self, kind: int, sm: int, flags: int) -> int:
        """Return the rank of an entry: the highest is best, -1 cannot be used."""
        flags &= FLAG_64_BIT | FLAGS_OF_SUFFIXES | FLAG_COMPATIBLE
        key = (kind, sm, flags)
        rank = self._ranks.get(key)
        if rank is None:
            rank = self._ranks[key] = self._rank(kind, sm, flags)
        return rank

    def _rank(self, kind: int, sm: int, flags: int) -> int:
        """Compute what `rank` returns."""
        # The architecture counts most, then machine code (4) before PTX, then the suffix.
        if not flags & FLAG_64_BIT:
            return -1
        suffix = 2 if flags & FLAG_CHIP else 1 if flags & FLAG_FAMILY else 0
        if kind == EntryKind.ELF:
            return sm << 4 | 4 | suffix if self._runs(sm, flags) else -1
        if kind == EntryKind.PTX:
            return sm << 4 | suffix if self._compiles(sm, flags) else -1
        if kind == EntryKind.LTOIR and self._compiles(sm, flags):
            # Without optimization, LTO-IR is the last choice.
            return sm << 4 | suffix | 1 << 24 if self._optimizes else 0
        return -1

    def _runs(self, sm: int, flags: int) -> bool:
        """Return whether the target runs machine code with these flags for `sm`."""
        target = self._target
        if sm == target.sm:
            if flags & FLAG_CHIP and not target.specific:
                self.met_accelerated = True
                return not self._parts_accelerated
            return True
        if sm >= 100 and not flags & FLAG_COMPATIBLE and (sm, target.sm) not in ALWAYS_COMPATIBLE:
            return False
        return target.accepts(sm, specific=bool(flags & FLAG_CHIP))

    def _compiles(self, sm: int, flags: int) -> bool:
        """Return whether PTX or LTO-IR with these flags for `sm` can be compiled for the target."""
        target = self._target
        if flags & FLAG_CHIP:
            return sm == target.sm and target.specific
        if flags & FLAG_FAMILY:
            return target.sm in (ARCHITECTURES[sm].related if sm in ARCHITECTURES else (sm,))
        return sm <= target.sm
