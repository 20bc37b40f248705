"""Architectures: names, families, and which input runs on which target."""

from __future__ import annotations

# How code relocations are stored, and whether functions have a mercury form.
FAMILY_A = 0  # sm_75 to sm_89: REL and RELA
FAMILY_B = 1  # sm_90: RELA only
FAMILY_C = 2  # sm_100 and later: RELA, mercury

# Bytes of shared memory that every kernel leaves to the system, from sm_90 on.
SYSTEM_SHARED = 0x400

# Bits of attribute 0x0b of .nv.compat that a target allows; measured, their meaning is not known.
FEATURES = {100: 0x09, 120: 0x50}

# Before sm_100: which targets run code for an architecture, other than itself.
ALSO_RUNS_ON = {80: (86, 89), 86: (89,)}

# Bytes of static shared memory of a kernel: 48 KiB, more where the target is one chip.
SHARED = 0xC000
SPECIFIC_SHARED = {
    90: 0x38C00,
    100: 0x38C00,
    103: 0x38C00,
    110: 0x38C00,
    120: 0x18C00,
    121: 0x18C00,
}


class Target:
    """The architecture of `-arch`, such as `sm_90a`.

    `sm` is its number, `family` one of the constants above, `specific` whether it has the suffix
    `a`, `elf_flags` the low bits of e_flags, `features` a mask for attribute 0x0b of .nv.compat,
    `shared_limit` the bytes of shared memory that a kernel may have.
    """

    __slots__ = ("elf_flags", "family", "features", "name", "shared_limit", "sm", "specific")

    def __init__(self, name: str) -> None:
        digits = name.rpartition("_")[2]
        self.name = name
        self.specific = digits.endswith("a")
        self.sm = int(digits.rstrip("af"))
        self.family = FAMILY_A if self.sm < 90 else FAMILY_B if self.sm < 100 else FAMILY_C
        # What attribute 0x0b of .nv.compat may keep: features that only some targets have.
        self.features = FEATURES.get(self.sm, 0)
        self.shared_limit = SPECIFIC_SHARED.get(self.sm, SHARED) if self.specific else SHARED
        self.elf_flags = (2 if self.family == FAMILY_C else 4) | self.sm << 8

    def accepts(self, sm: int, specific: bool) -> bool:
        """Whether code for sm_<sm>, with the suffix `a` if `specific`, runs on this target.

        The suffix of the target does not matter. From sm_100 on code runs on what has the same
        major version and is not older, but specific code only on its own number.
        """
        if sm == self.sm:
            return True
        if self.sm < 100:
            return self.sm in ALSO_RUNS_ON.get(sm, ())
        return sm // 10 == self.sm // 10 and sm < self.sm and not specific

    def limits(self, sm: int) -> bool:
        """Whether code for sm_<sm> lacks the mercury form that this target asks for."""
        return sm < 100 <= self.sm
