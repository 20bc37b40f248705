"""Mercury vectors of a cubin: which sections enter which vector, and the symbols they use.

Which names take part, and that any other `.nv.merc.` name never enters a vector, is a property of
nvlink's comparison; that today's compilers write the code container as `.nv.capmerc.text.F` and one
`.nv.merc.nv_debug_ptx_txt.HASH` a file was seen in cubins of sm_100 to sm_120.
"""

from __future__ import annotations

import struct

from pylink.dedup.reasons import show
from pylink.facts.elf import EM_CUDA, NO_BYTES, SHN_XINDEX
from pylink.facts.records import EHDR, RELA, SHDR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer

    from pylink.dedup.objects import MercuryObject

# Families whose sections enter the header and primary vectors, by the rest of the name after
# `.nv.merc.`; SUFFIXED ones carry a suffix that takes part in the comparison.
EXACT = frozenset(
    b"debug_abbrev debug_aranges debug_frame debug_info debug_line debug_loc debug_macinfo "
    b"debug_pubnames debug_pubtypes debug_ranges debug_str nv_debug_line_sass "
    b"nv_debug_info_reg_sass nv_debug_info_reg_type nv_debug_ptx_txt symtab_shndx".split()
)
SUFFIXED = (b"nv_debug_ptx_txt.", b"nv.shared.reserved.", b"text.")
PREFIX = b".nv.merc."
CAPSULE = b".nv.capmerc.text."
TARGETS = b".nv.merc.rela"
SYMTAB = b".nv.merc.symtab"
ATTRIBUTES = b".nv.merc.nv.info"

WITHOUT_BYTES = NO_BYTES | {0}  # the null section has none either

KIND = struct.Struct("<IQQQ")  # sh_type, sh_flags, sh_entsize, bytes in the file
SYM_SIZE = 24


class MalformedCubin(ValueError):
    """A file that cannot be read as a cubin; the text names file and place."""


class Section:
    """A section header with its name and its bytes in the file (none for NOBITS kinds)."""

    __slots__ = ("data", "kind", "name", "sh_addralign", "sh_info", "sh_link", "sh_size")

    def __init__(self, name: bytes, data: memoryview, row: tuple[int, ...]) -> None:
        self.name = name
        self.data = data
        self.kind = KIND.pack(row[1], row[2], row[9], len(data))
        self.sh_size, self.sh_link, self.sh_info, self.sh_addralign = row[5:9]


def family(name: bytes) -> str | None:
    """The family by which a section enters the header vector, or None."""
    if name.startswith(CAPSULE):
        return "container"
    if not name.startswith(PREFIX):
        return None
    rest = name[len(PREFIX) :]
    if rest in EXACT:
        return rest.decode()
    for prefix in SUFFIXED:
        if rest.startswith(prefix):
            return "container" if prefix == b"text." else prefix[:-1].decode()
    return None


def read_sections(data: memoryview, file: str) -> list[Section]:
    """The checked section table of a cubin."""
    size = len(data)
    if size < EHDR.size:
        raise MalformedCubin(f"{file}: {size} bytes are too few for an ELF header")
    ehdr = EHDR.unpack_from(data)
    if ehdr[0][:6] != b"\x7fELF\x02\x01" or ehdr[2] != EM_CUDA:
        raise MalformedCubin(f"{file}: not a 64-bit little-endian EM_CUDA ELF file")
    offset, entsize, count, names_at = ehdr[6], ehdr[11], ehdr[12], ehdr[13]
    if offset == 0:
        return []
    if entsize != SHDR.size or offset > size or SHDR.size > size - offset:
        raise MalformedCubin(f"{file}: the section header table at {offset:#x} is not in the file")
    first = SHDR.unpack_from(data, offset)
    count = count or first[5]  # more than 0xff00 sections: the count is in the null section
    names_at = first[6] if names_at == SHN_XINDEX else names_at
    if count > (size - offset) // SHDR.size:
        raise MalformedCubin(f"{file}: {count} section headers at {offset:#x} run past the file")
    rows = list(SHDR.iter_unpack(data[offset : offset + count * SHDR.size]))
    for index, row in enumerate(rows):
        if row[1] not in WITHOUT_BYTES and (row[4] > size or row[5] > size - row[4]):
            raise MalformedCubin(
                f"{file}: section {index}: {row[5]:#x} bytes at {row[4]:#x} run past the file"
            )
    if names_at >= count or rows[names_at][1] in WITHOUT_BYTES:
        raise MalformedCubin(f"{file}: section names: no section {names_at}")
    start, length = rows[names_at][4:6]
    names = bytes(data[start : start + length])
    sections = []
    for index, row in enumerate(rows):
        end = names.find(b"\0", row[0])
        if row[0] >= length or end < 0:
            raise MalformedCubin(f"{file}: section {index}: name at {row[0]:#x} is not terminated")
        length_in_file = 0 if row[1] in WITHOUT_BYTES else row[5]
        start = row[4] if length_in_file else 0
        view = data[start : start + length_in_file]
        sections.append(Section(names[row[0] : end], view, row))
    return sections


def read_cubin(cls: type[MercuryObject], data: Buffer, name: str) -> MercuryObject:
    """The vectors of a cubin, in section order; all empty when it has no Mercury sections."""
    file = name or "cubin"
    view = memoryview(data)
    view = memoryview(bytes(view)) if not view.readonly or not view.c_contiguous else view.cast("B")
    sections = read_sections(view, file)
    families = [family(section.name) for section in sections]
    compared = [s for s, kind in zip(sections, families, strict=True) if kind is not None]
    targets = [section for section in sections if section.name.startswith(TARGETS)]
    for section in compared:
        if section.sh_addralign > 0xFFFF_FFFF:
            raise MalformedCubin(
                f"{file}: {show(section.name)}: sh_addralign {section.sh_addralign:#x}"
            )
    item = cls(
        [section.data for section in compared],
        [(s.name, s.sh_size, s.sh_link | s.sh_info << 32, s.sh_addralign) for s in compared],
        [(section.name, section.data) for section in targets],
        name,
    )
    item.families = tuple(kind for kind in families if kind is not None)
    item.numbers = tuple(i for i, kind in enumerate(families) if kind is not None)
    item.target_numbers = tuple(
        i for i, section in enumerate(sections) if section.name.startswith(TARGETS)
    )
    item.unlisted = tuple(
        (show(s.name), s.sh_size)
        for s, kind in zip(sections, families, strict=True)
        if s.name.startswith(PREFIX) and kind is None and not s.name.startswith(TARGETS)
    )
    if compared or targets:
        _attach_symbols(item, sections, families, compared, targets, file)
    return item


def _attach_symbols(
    item: MercuryObject,
    sections: list[Section],
    families: list[str | None],
    compared: list[Section],
    targets: list[Section],
    file: str,
) -> None:
    """Give the object its `.nv.merc.symtab`, which all its relocation sections must name."""
    tables = [index for index, section in enumerate(sections) if section.name == SYMTAB]
    if len(tables) != 1:
        raise MalformedCubin(f"{file}: {len(tables)} sections {show(SYMTAB)} instead of one")
    symtab = sections[tables[0]]
    if len(symtab.data) % SYM_SIZE or symtab.sh_link >= len(sections):
        raise MalformedCubin(f"{file}: {show(SYMTAB)}: bad size or sh_link")
    for target in targets:
        if len(target.data) % RELA.size:
            raise MalformedCubin(
                f"{file}: {show(target.name)}: {len(target.data)} bytes are no whole entries"
            )
        if target.sh_link != tables[0] or target.sh_info >= len(sections):
            raise MalformedCubin(f"{file}: {show(target.name)}: bad sh_link or sh_info")
    attributes = [section.data for section in sections if section.name == ATTRIBUTES]
    try:
        item.vectors.attach_symbols(
            symtab.data,
            sections[symtab.sh_link].data,
            tuple(
                section.name if kind is not None else None
                for section, kind in zip(sections, families, strict=True)
            ),
            tuple(sections[target.sh_info].name for target in targets),
            attributes[0] if attributes else b"",
            b"".join(section.kind for section in (*compared, *targets)),
        )
    except IndexError as error:
        raise MalformedCubin(
            f"{file}: {show(SYMTAB)}: a name or a relocation's symbol runs past its table"
        ) from error
