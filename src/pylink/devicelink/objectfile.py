"""A writer of relocatable ELF64 files of a host.

The caller adds sections, symbols and relocations. Large contents are not copied.
"""

from __future__ import annotations

from itertools import accumulate

from pylink.devicelink.machinecode import CopiedRelocations
from pylink.facts.elf import (
    ET_REL,
    SHF_INFO_LINK,
    SHT_NOBITS,
    SHT_PROGBITS,
    SHT_RELA,
    SHT_STRTAB,
    SHT_SYMTAB,
    STB_GLOBAL,
    STB_LOCAL,
    STT_FUNC,
    STT_SECTION,
    STV_DEFAULT,
    STV_HIDDEN,
)
from pylink.facts.records import EHDR, RELA_INFO, SHDR, SYM
from pylink.inputs.kinds import ELF_MAGIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.devicelink.machinecode import Function, Relocation

IDENT = (ELF_MAGIC + b"\2\1\1").ljust(16, b"\0")  # 64 bit, little-endian, System V


class Section:
    """A section with the contents `pieces`, or with `size` bytes without contents.

    Each of the `relocations` names a symbol or a section.
    """

    __slots__ = (
        "align",
        "entry_size",
        "flags",
        "info",
        "link",
        "name",
        "pieces",
        "relocations",
        "size",
        "type",
    )

    def __init__(
        self,
        name: str,
        pieces: list[bytes],
        *,
        flags: int = 0,
        align: int = 1,
        type: int = SHT_PROGBITS,
        size: int | None = None,
    ) -> None:
        self.name = name
        self.pieces = pieces
        self.size = sum(map(len, pieces)) if size is None else size
        self.flags = flags
        self.align = align
        self.type = type
        self.link = self.info = self.entry_size = 0
        self.relocations: Sequence[Relocation | CopiedRelocations] = []


class ObjectFile:
    """A builder of a file: add sections, then symbols, then the tables, and get its `pieces`.

    Relocations can name a section, or a global symbol that was defined. Other names become
    undefined symbols, with hidden visibility if they are in `hidden`. `_names` are the contents of
    .strtab; `_locals` and `_globals` are rows of .symtab, the second by name.
    """

    __slots__ = ("_globals", "_locals", "_names", "hidden", "machine", "sections")

    def __init__(self, machine: int) -> None:
        self.machine = machine
        self.sections: list[Section] = []
        self.hidden: frozenset[str] = frozenset()
        self._names = bytearray(b"\0")
        self._locals: list[bytes] = []
        self._globals: dict[str, bytes] = {}

    def add(self, section: Section) -> Section:
        """Add a section and return it."""
        self.sections.append(section)
        return section

    def define(
        self,
        name: str,
        section: Section,
        value: int = 0,
        size: int = 0,
        *,
        type: int = 0,
        binding: int = STB_LOCAL,
        visibility: int = STV_DEFAULT,
    ) -> None:
        """Define a symbol. Relocations cannot name a local symbol, only its section."""
        shndx = self.sections.index(section) + 1  # section 0 is the empty one
        (offset,) = self._add_names([name])
        row = SYM.pack(offset, binding << 4 | type, visibility, shndx, value, size)
        if binding == STB_LOCAL:
            self._locals.append(row)
        else:
            self._globals[name] = row

    def define_functions(
        self, functions: Sequence[Function], section: Section, visibilities: Sequence[int]
    ) -> None:
        """Define a global symbol for each function; `visibilities` has one value for each."""
        shndx, info = self.sections.index(section) + 1, STB_GLOBAL << 4 | STT_FUNC
        offsets = self._add_names([function.name for function in functions])
        for function, offset, visibility in zip(functions, offsets, visibilities, strict=True):
            self._globals[function.name] = SYM.pack(
                offset, info, visibility, shndx, function.start, function.size
            )

    def _add_names(self, names: Sequence[str]) -> list[int]:
        """Add names of symbols to .strtab and return their offsets there."""
        sizes_before = accumulate(map(len, names), initial=len(self._names))
        # Each of the names in front has a zero byte after it.
        offsets = [size + number for number, size in enumerate(sizes_before)]
        self._names += "\0".join([*names, ""]).encode("ascii")
        return offsets[:-1]

    def pieces(self) -> list[bytes]:
        """Return the bytes of the file, in order; `add_tables` must have been called.

        The ELF header comes first, then the sections, then their headers.
        """
        names = bytearray(b"\0")
        headers = [bytes(SHDR.size)]
        pieces = [b""]  # the ELF header, which is made last
        offset = EHDR.size
        shstrtab = self.add(Section(".shstrtab", [], type=SHT_STRTAB))
        for section in self.sections:
            name_offset = len(names)
            names += section.name.encode("ascii") + b"\0"
            if section is shstrtab:
                section.pieces, section.size = [bytes(names)], len(names)
            padding = -offset % section.align
            offset += padding
            headers.append(
                SHDR.pack(
                    name_offset,
                    section.type,
                    section.flags,
                    0,  # sh_addr
                    offset,
                    section.size,
                    section.link,
                    section.info,
                    section.align,
                    section.entry_size,
                )
            )
            pieces += [bytes(padding), *section.pieces]
            if section.type != SHT_NOBITS:
                offset += section.size
        padding = -offset % 8
        pieces += [bytes(padding), *headers]
        pieces[0] = EHDR.pack(
            IDENT,
            ET_REL,
            self.machine,
            1,  # e_version
            0,  # e_entry
            0,  # e_phoff
            offset + padding,
            0,  # e_flags
            EHDR.size,
            0,  # e_phentsize
            0,  # e_phnum
            SHDR.size,
            len(headers),
            len(headers) - 1,  # e_shstrndx
        )
        return pieces

    def add_tables(self) -> None:
        """Add the tables of relocations, symbols and names."""
        contents = list(self.sections)
        rows = [bytes(SYM.size)]
        number_of = {}  # of the symbol that a relocation refers to, by its name
        for shndx, section in enumerate(contents, 1):
            number_of[section.name] = len(rows)
            rows.append(SYM.pack(0, STT_SECTION, STV_DEFAULT, shndx, 0, 0))
        rows += self._locals
        first_global = len(rows)
        for name, row in self._globals.items():
            number_of[name] = len(rows)
            rows.append(row)
        for section in contents:
            symbols: dict[str, None] = {}  # in the order of their first use
            for entry in section.relocations:
                if isinstance(entry, CopiedRelocations):
                    symbols.update(dict.fromkeys(entry.symbols()))
                else:
                    symbols[entry[2]] = None
            missing = [name for name in symbols if name not in number_of]
            number_of.update(zip(missing, range(len(rows), len(rows) + len(missing)), strict=True))
            info, hidden = STB_GLOBAL << 4, self.hidden
            for name, offset in zip(missing, self._add_names(missing), strict=True):
                visibility = STV_HIDDEN if name in hidden else STV_DEFAULT
                rows.append(SYM.pack(offset, info, visibility, 0, 0, 0))
        relocated = [section for section in contents if section.relocations]
        symtab_shndx = len(contents) + len(relocated) + 1
        for section in relocated:
            packed = []
            for entry in section.relocations:
                if isinstance(entry, CopiedRelocations):
                    packed.append(entry.pack(number_of))
                else:
                    offset, kind, name, addend = entry
                    packed.append(RELA_INFO.pack(offset, number_of[name] << 32 | kind, addend))
            rela = Section(
                f".rela{section.name}",
                [b"".join(packed)],
                type=SHT_RELA,
                flags=SHF_INFO_LINK,
                align=8,
            )
            rela.link, rela.info = symtab_shndx, contents.index(section) + 1
            rela.entry_size = RELA_INFO.size
            self.add(rela)
        symtab = self.add(Section(".symtab", [b"".join(rows)], type=SHT_SYMTAB, align=8))
        symtab.link, symtab.info = symtab_shndx + 1, first_global
        symtab.entry_size = SYM.size
        self.add(Section(".strtab", [bytes(self._names)], type=SHT_STRTAB))
