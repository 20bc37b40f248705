"""Architectures: names, families, and which input runs on which target."""

from __future__ import annotations

# Families differ in their relocation sections and in whether functions have a mercury form.
FAMILY_A = 0  # sm_75 to sm_89: REL and RELA
FAMILY_B = 1  # sm_90: RELA only
FAMILY_C = 2  # sm_100 and later: RELA, mercury

# Traits of families, as bits beside those of releases (releases.py).
TRAIT_MERCURY = 1 << 16  # mercury code is linked, which a second program turns into the final file
TRAIT_COMPAT = 1 << 17  # files have .nv.compat
TRAIT_REGCOUNT_INFO = 1 << 18  # sh_info of code has the function's registers
TRAIT_SHARED_RESERVE = 1 << 20  # kernels reserve shared memory for the system
TRAIT_FILLS_SHARED = 1 << 21  # the bytes for the system alone create a section of shared memory
FAMILY_TRAITS = (
    TRAIT_REGCOUNT_INFO,
    TRAIT_COMPAT | TRAIT_SHARED_RESERVE | TRAIT_FILLS_SHARED,
    TRAIT_COMPAT | TRAIT_SHARED_RESERVE | TRAIT_MERCURY,
)

# Bytes of shared memory that a kernel reserves for the system by default, from sm_90 on.
SYSTEM_SHARED = 0x400

LITERAL_BANK = 2  # the constant bank of literals and jump tables
CONSTANT_BANK = 3  # the constant bank of file-scope variables
CONSTANT_LIMIT = 0x10000  # bytes of a bank that code can address

# Bytes of static shared memory that a kernel may have: 48 KiB. For a target with the suffix `a`, it
# is 227 or 99 KiB, depending on the chip.
SHARED_LIMIT = 0xC000
LARGE_SHARED = 0x38C00
SMALL_SHARED = 0x18C00


class Architecture:
    """An architecture that `-arch` can name.

    * `suffixes`: the suffixes that its name can have, besides none.
    * `also`: other targets that run its machine code, before sm_100.
    * `related`: targets that run PTX compiled for it with the suffix `f`; the first is itself.
    * `shared`: bytes of shared memory that a kernel for this chip only, with suffix `a`, may have.
    * `features`: bits of attribute 0x0b of .nv.compat that it allows. They were measured; their
      meaning is unknown.
    * `since`: code from toolkits before this one must be recompiled; 120 is 12.0, 0 is none.
    * `untimed`: chips whose code relies on fixed latencies of FP64 and IMMA instructions, which
      this chip does not have.
    """

    __slots__ = ("also", "features", "related", "shared", "since", "sm", "suffixes", "untimed")

    def __init__(
        self,
        sm: int,
        suffixes: str = "",
        *,
        also: tuple[int, ...] = (),
        related: tuple[int, ...] = (),
        shared: int = SHARED_LIMIT,
        features: int = 0,
        since: int = 0,
        untimed: tuple[int, ...] = (),
    ) -> None:
        self.sm = sm
        self.suffixes = suffixes
        self.also = also
        self.related = (sm, *related)
        self.shared = shared
        self.features = features
        self.since = since
        self.untimed = untimed


ARCHITECTURES = {
    row.sm: row
    for row in (
        Architecture(75),
        Architecture(80, also=(86, 89)),
        Architecture(86, also=(89,)),
        Architecture(87),
        Architecture(88),
        Architecture(89),
        Architecture(90, "a", shared=LARGE_SHARED, since=120),
        Architecture(100, "af", related=(103,), shared=LARGE_SHARED, features=0x09),
        Architecture(103, "af", shared=LARGE_SHARED, untimed=(100,)),
        Architecture(110, "af", shared=LARGE_SHARED),
        Architecture(120, "af", related=(121,), shared=SMALL_SHARED, features=0x50),
        Architecture(121, "af", shared=SMALL_SHARED),
    )
}
# CUDA 12.8 and 12.9 call sm_110 sm_101. nvlink for sm_110 finds no such cubins in fat binaries.
RENAMED = {101: 110}
# The last release that supported an older architecture, from the release notes.
LAST_SUPPORT = {
    **dict.fromkeys((20, 21), "8.0"),
    **dict.fromkeys((30, 32), "10.2"),
    **dict.fromkeys((35, 37), "11.8"),
    **dict.fromkeys((50, 52, 53, 60, 61, 62, 70, 72), "12.9"),
}
# Names that `-arch` accepts, without their prefix.
NAMES = tuple(
    f"{row.sm}{suffix}" for row in ARCHITECTURES.values() for suffix in ("", *row.suffixes)
)


class Target:
    """The architecture of `-arch`, such as `sm_90a`.

    * `sm`: its number.
    * `family`: one of the FAMILY_ constants.
    * `specific`: whether its name has the suffix `a`.
    * `elf_flags`: e_flags of the output, except the bit for the suffix.
    * `features`: a mask for attribute 0x0b of .nv.compat.
    * `shared_limit`: bytes of shared memory that a kernel may have.
    * `since`: the first toolkit whose code it runs; 120 is 12.0, 0 is any.
    * `untimed`: SM numbers of code whose FP64 and IMMA instructions must be changed to wait.
    """

    __slots__ = (
        "elf_flags", "family", "features", "name", "shared_limit", "since", "sm", "specific",
        "untimed",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        digits = name.rpartition("_")[2]
        self.name = name
        self.specific = digits.endswith("a")
        self.sm = int(digits.rstrip("af"))
        self.family = FAMILY_A if self.sm < 90 else FAMILY_B if self.sm < 100 else FAMILY_C
        row = ARCHITECTURES.get(self.sm) or Architecture(self.sm)
        self.features = row.features
        self.since = row.since
        self.untimed = row.untimed
        self.shared_limit = row.shared if self.specific else SHARED_LIMIT
        self.elf_flags = (2 if self.family == FAMILY_C else 4) | self.sm << 8

    def accepts(self, sm: int, *, specific: bool) -> bool:
        """Return whether code for sm_<sm>, with the suffix `a` if `specific`, runs on this target.

        The suffix of the target does not matter. From sm_100 on code runs on targets of the same
        major version that are not older; specific code runs only on its own number.
        """
        if sm == self.sm:
            return True
        if sm not in ARCHITECTURES:
            return False
        if self.sm < 100:
            return self.sm in ARCHITECTURES[sm].also
        return sm // 10 == self.sm // 10 and sm < self.sm and not specific

    def accepts_cubin(self, sm: int, *, specific: bool) -> bool:
        """Return what `accepts` does for a cubin's SM number, which may be an old one (RENAMED)."""
        return self.accepts(RENAMED.get(sm, sm), specific=specific)

    def lacks_mercury(self, sm: int) -> bool:
        """Return whether code for sm_<sm> lacks the mercury form that this target needs."""
        return sm < 100 <= self.sm
