"""Fields of a cubin's ELF header: one row per object format, recognized by two bytes of e_ident.

`header.py` writes the rows as constants for the reader of cubins; Python code, such as `inspect`,
uses them here. The experiments are in docs/older-objects.md.
"""

from __future__ import annotations

from pylink.facts.elf import EI_OSABI, SHF_INFO_LINK


class ObjectFormat:
    """An object format.

    * `os_abi`, `abi_version`: bytes 7 and 8 of e_ident.
    * `sm_first`, `sm_mask`: the SM number of the code is e_flags >> `sm_first` & `sm_mask`.
    * `ptx_first`, `ptx_mask`: likewise the SM number of the PTX that the code was compiled from. If
      `ptx_mask` is 0, a note has that number.
    * `specific`: the bit of e_flags of code for one architecture only, with the suffix `a`.
    * `wide`: the bit of e_flags for 64-bit addresses; 0 if all addresses have 64 bits.
    * `refused`: bits of e_flags that no linker accepts.
    * `written`: bits of e_flags that every output has.
    * `optional`: bits of sh_flags that sections may lack.
    * `versioned`: from this SM number on (0: for all), e_version is the number of the toolkit.
    """

    __slots__ = (
        "abi_version", "optional", "os_abi", "ptx_first", "ptx_mask", "refused", "sm_first",
        "sm_mask", "specific", "versioned", "wide", "written",
    )  # fmt: skip

    def __init__(
        self,
        os_abi: int,
        abi_version: int,
        *,
        sm_first: int,
        sm_mask: int,
        ptx_first: int = 0,
        ptx_mask: int = 0,
        specific: int = 0,
        wide: int = 0,
        refused: int = 0,
        written: int = 0,
        optional: int = 0,
        versioned: int = 0,
    ) -> None:
        self.os_abi = os_abi
        self.abi_version = abi_version
        self.sm_first = sm_first
        self.sm_mask = sm_mask
        self.ptx_first = ptx_first
        self.ptx_mask = ptx_mask
        self.specific = specific
        self.wide = wide
        self.refused = refused
        self.written = written
        self.optional = optional
        self.versioned = versioned

    @property
    def abi(self) -> bytes:
        """The two bytes of e_ident that distinguish the format."""
        return bytes((self.os_abi, self.abi_version))

    def flags(self, sm: int, ptx_sm: int, *, specific: bool) -> int:
        """Return the e_flags of an output for SM number `sm` from PTX for `ptx_sm`.

        `specific` says that the target has the suffix `a`. `ptx_sm` is 0 without a `ptx_mask`.
        """
        suffix_bit = self.specific if specific else 0
        return self.written | sm << self.sm_first | ptx_sm << self.ptx_first | suffix_bit


OBJECT_FORMATS = (
    # CUDA writes this since 13.0, from sm_100 on since 12.8. Only code for sm_100 and later sets
    # bit 3.
    ObjectFormat(0x41, 8, sm_first=8, sm_mask=0xFFFF, specific=0x8, versioned=100),
    # CUDA wrote this up to 12.9, before sm_100. nvlink refuses bit 31 as another ABI and crashes
    # at bit 14.
    ObjectFormat(
        0x33,
        7,
        sm_first=0,
        sm_mask=0xFF,
        ptx_first=16,
        ptx_mask=0xFF,
        specific=0x800,
        wide=0x400,
        written=0x500,
        refused=0x80004000,
        optional=SHF_INFO_LINK,  # 12.0 and older releases do not set it
    ),
)
CURRENT = OBJECT_FORMATS[0]
# Index in OBJECT_FORMATS of the format up to CUDA 12.9. Its objects can be too old for a
# target (`Architecture.since`).
EARLY_FORMAT = 1

E_FLAGS = slice(48, 52)  # field of a 64-bit ELF header


def sm_of_cubin(image: bytes) -> int:
    """Return the SM number in the ELF header of a cubin; unknown formats are read as `CURRENT`."""
    os_abi = image[EI_OSABI] if len(image) > EI_OSABI else 0
    layout = next((row for row in OBJECT_FORMATS if row.os_abi == os_abi), CURRENT)
    return int.from_bytes(image[E_FLAGS], "little") >> layout.sm_first & layout.sm_mask
