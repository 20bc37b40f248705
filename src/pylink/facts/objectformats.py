"""How the ELF header of a cubin is read: one row per object format, distinguished by e_ident.

`header.py` makes the rows constants of the reader; `inspect` and the stand-in of nvJitLink ask
them here. The experiments are in docs/older-objects.md.
"""

from __future__ import annotations

from pylink.facts.elf import SHF_INFO_LINK


class ObjectFormat:
    """One row.

    `os_abi` and `abi_version` are bytes 7 and 8 of e_ident. The SM number of the code is in
    `sm_mask` bits of e_flags from bit `sm_first` on, that of the PTX it was made from, where
    `ptx_mask` is not 0, from `ptx_first` on; else a note has it. Bits of e_flags: `specific` says
    that code is for one architecture alone, `wide` that addresses have 64 bits (0: all have),
    `refused` ones no linker takes, `written` those that every output has. Sections may lack the
    flags `optional`. From SM `versioned` on e_version is the number of the toolkit.
    """

    __slots__ = (
        "abi_version",
        "optional",
        "os_abi",
        "ptx_first",
        "ptx_mask",
        "refused",
        "sm_first",
        "sm_mask",
        "specific",
        "versioned",
        "wide",
        "written",
    )

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
        """The two bytes of e_ident that tell the format."""
        return bytes((self.os_abi, self.abi_version))

    def flags(self, sm: int, ptx_sm: int, *, specific: bool) -> int:
        """e_flags of an output."""
        suffix = self.specific if specific else 0
        return self.written | sm << self.sm_first | ptx_sm << self.ptx_first | suffix


OBJECT_FORMATS = (
    # Since 13.0, and from sm_100 on since 12.8, which alone sets bit 3.
    ObjectFormat(0x41, 8, sm_first=8, sm_mask=0xFFFF, specific=0x8, versioned=100),
    # To 12.9, before sm_100. nvlink takes bit 31 for another ABI and ends by a signal at bit 14.
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
        optional=SHF_INFO_LINK,  # to 12.0
    ),
)
CURRENT = OBJECT_FORMATS[0]
# The format whose objects a target may find too old; see `Architecture.since`.
VERSIONED = 1


E_FLAGS = slice(48, 52)


def sm_of_cubin(image: bytes) -> int:
    """The architecture that the ELF header of a cubin names; the current format where none fits."""
    os_abi = image[7] if len(image) > 7 else 0
    known = next((row for row in OBJECT_FORMATS if row.os_abi == os_abi), CURRENT)
    return int.from_bytes(image[E_FLAGS], "little") >> known.sm_first & known.sm_mask
