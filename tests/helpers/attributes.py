"""Reads attribute records (EIATTR) of functions in relocatable cubins, and adds or removes some."""

from __future__ import annotations

import io
import struct
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from elftools.elf.elffile import ELFFile

# Prefixes of names of sections with attributes of one function.
PREFIXES = (".nv.info.", ".nv.merc.nv.info.")
# Forms of a record: no value, a byte, a half word, and a size with that many bytes.
NVAL, BVAL, HVAL, SVAL = 1, 2, 3, 4
SECTION_HEADER = 64  # bytes of a section header; sh_offset and sh_size are at 24


@dataclass(frozen=True)
class Record:
    """One record: with a `value` in the formats NVAL to HVAL, with 32-bit `words` in SVAL."""

    attribute: int
    form: int
    value: int = 0
    words: tuple[int, ...] = ()

    def as_bytes(self) -> bytes:
        """Return the bytes of the record."""
        if self.form != SVAL:
            return struct.pack("<BBH", self.form, self.attribute, self.value)
        size = 4 * len(self.words)
        return struct.pack(f"<BBH{len(self.words)}I", SVAL, self.attribute, size, *self.words)


def records(contents: bytes) -> list[bytes]:
    """Return the bytes of each record of one section."""
    packed_records = []
    at = 0
    while at < len(contents):
        form, _, size = struct.unpack_from("<BBH", contents, at)
        end = at + 4 + (size if form == SVAL else 0)
        packed_records.append(contents[at:end])
        at = end
    return packed_records


def plant(
    cubin: bytes, function: str, added: Iterable[Record], dropped: Collection[int] = ()
) -> bytes:
    """Return the cubin without a function's records of `dropped` attributes, and with `added`.

    `function` is a mangled name. From sm_100 on, its two sections are changed: the plain one and
    the mercury one.
    """
    names = [prefix + function for prefix in PREFIXES]
    new = b"".join(record.as_bytes() for record in added)
    elf = ELFFile(io.BytesIO(cubin))
    image = bytearray(cubin)
    for number, section in enumerate(elf.iter_sections()):
        if section.name not in names:
            continue
        remaining = (record for record in records(section.data()) if record[1] not in dropped)
        contents = b"".join(remaining) + new
        image += bytes(-len(image) % 16)
        header = elf["e_shoff"] + SECTION_HEADER * number
        struct.pack_into("<QQ", image, header + 24, len(image), len(contents))
        image += contents
    return bytes(image)
