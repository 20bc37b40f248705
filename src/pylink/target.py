"""Architectures: names, families, and which input runs on which target."""

from __future__ import annotations

# How code relocations are stored, and whether functions have a mercury form.
FAMILY_A = 0  # sm_75 to sm_89: REL and RELA
FAMILY_B = 1  # sm_90: RELA only
FAMILY_C = 2  # sm_100 and later: RELA, mercury


class Target:
    """The architecture of `-arch`, such as `sm_90a`.

    `sm` is its number, `family` one of the constants above, `specific` whether it has the suffix
    `a`, `elf_flags` the low bits of e_flags.
    """

    __slots__ = ("elf_flags", "family", "name", "sm", "specific")

    def __init__(self, name: str) -> None:
        digits = name.rpartition("_")[2]
        self.name = name
        self.specific = digits.endswith("a")
        self.sm = int(digits.rstrip("af"))
        self.family = FAMILY_A if self.sm < 90 else FAMILY_B if self.sm < 100 else FAMILY_C
        self.elf_flags = (2 if self.family == FAMILY_C else 4) | self.sm << 8

    def accepts(self, sm: int) -> bool:
        """Whether code for sm_<sm> runs on this target: same major version, not newer."""
        return sm // 10 == self.sm // 10 and sm <= self.sm
