"""Reading and planting attribute records (EIATTR) of functions in relocatable cubins."""

from __future__ import annotations

import io
import struct
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from elftools.elf.elffile import ELFFile

PREFIXES = (".nv.info.", ".nv.merc.nv.info.")
NVAL, BVAL, HVAL, SVAL = 1, 2, 3, 4
SECTION_HEADER = 64  # bytes of a row; offset and size of the contents stand at 24


@dataclass(frozen=True)
class Record:
    """One record: `value` of the formats NVAL to HVAL, `words` of SVAL."""

    attribute: int
    form: int
    value: int = 0
    words: tuple[int, ...] = ()

    def packed(self) -> bytes:
        if self.form != SVAL:
            return struct.pack("<BBH", self.form, self.attribute, self.value)
        size = 4 * len(self.words)
        return struct.pack(f"<BBH{len(self.words)}I", SVAL, self.attribute, size, *self.words)


def records(contents: bytes) -> list[bytes]:
    """The packed records of one section."""
    found = []
    at = 0
    while at < len(contents):
        form, _, size = struct.unpack_from("<BBH", contents, at)
        end = at + 4 + (size if form == SVAL else 0)
        found.append(contents[at:end])
        at = end
    return found


def plant(
    cubin: bytes, function: str, added: Iterable[Record], dropped: Collection[int] = ()
) -> bytes:
    """The cubin whose function lost the records of `dropped` attributes and has the new ones last.

    `function` is a mangled name. From sm_100 on both lists of the function change alike.
    """
    names = [prefix + function for prefix in PREFIXES]
    new = b"".join(record.packed() for record in added)
    elf = ELFFile(io.BytesIO(cubin))
    image = bytearray(cubin)
    for number, section in enumerate(elf.iter_sections()):
        if section.name not in names:
            continue
        kept = (record for record in records(section.data()) if record[1] not in dropped)
        contents = b"".join(kept) + new
        image += bytes(-len(image) % 16)
        header = elf["e_shoff"] + SECTION_HEADER * number
        struct.pack_into("<QQ", image, header + 24, len(image), len(contents))
        image += contents
    return bytes(image)
