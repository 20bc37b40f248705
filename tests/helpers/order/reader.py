"""The inputs of the order reference: sections and symbols in the order of reading.

From sm_100 on nvlink links the mercury sections of its inputs. `_mercury_half` gives them their
plain names and removes the plain relocations, so that other code treats all families the same way.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pylink.facts.records import REL, RELA, SHDR

if TYPE_CHECKING:
    from helpers.order.lists import Section, Symbol

UND, COMMON = 0, 0xFFF2
LOCAL, WEAK = 0, 2
NOTYPE, FUNC, SECTION = 0, 2, 3
MERCURY = 0x10000000
ENTRY = 0x10  # in st_other: a kernel
REGCOUNT = 0x2F
CONST0_SIZE = ".nv.ptx.const0.size"
SYMBOL = struct.Struct("<IBBHQQ")

# Kinds of sections by type, for types that have one kind.
KINDS = {
    0: "table",
    2: "table",
    3: "table",
    18: "table",
    4: "relocations",
    9: "relocations",
    7: "own",
    0x70000001: "calls",
    0x70000002: "prototypes",
    0x70000007: "global",
    0x70000008: "init",
    0x7000000B: "own",
    0x70000015: "reserved",
    0x70000016: "capsule",
    0x70000086: "own",
}
NO_BYTES = (8, 0x70000007, 0x7000000A)
# Names of constant banks until the second program renames them.
FIRST_NAMES = {".nv.constant3": ".nv.constant.user", ".nv.constant4": ".nv.constant.pic"}


@dataclass(eq=False)
class Part:
    """A section of an input; `kind` is the reference's word for what it is."""

    index: int
    name: str
    type: int
    flags: int
    size: int
    link: int
    info: int
    align: int
    data: bytes
    kind: str = ""
    owner: Mention | None = None  # the function to which the section belongs
    home: Section | None = None  # the output section that contains its bytes
    base: int = 0  # offset of its bytes there
    appended: bool = False  # whether `base` is set, at the end of the earlier inputs' bytes


@dataclass(eq=False)
class Mention:
    """A symbol of an input."""

    index: int
    name: str
    value: int
    size: int
    bind: int
    type: int
    other: int
    shndx: int
    file: Input
    part: Part | None = None
    symbol: Symbol | None = None  # of the output
    lost: bool = False  # a definition that lost against the one before it

    @property
    def is_definition(self) -> bool:
        """Whether it is a definition."""
        return self.part is not None or self.shndx == COMMON

    @property
    def is_label(self) -> bool:
        """Whether it is a local undefined name, which stands for the null symbol."""
        return self.bind == LOCAL and self.type == NOTYPE and self.shndx == UND

    @property
    def output_symbol(self) -> Symbol:
        """The symbol of the output; ValueError if it has none."""
        if self.symbol is None:
            raise ValueError(f"{self.name} has no symbol")
        return self.symbol


@dataclass(eq=False)
class Entry:
    """A row of a relocation section; `addend` is 0 in the implicit form."""

    offset: int
    type: int
    symbol: int
    addend: int


@dataclass(eq=False)
class Input:
    """A relocatable cubin; with `linked` any cubin, which is only read."""

    image: bytes
    linked: bool = False
    parts: list[Part] = field(default_factory=list)
    mentions: list[Mention] = field(default_factory=list)
    registers: dict[int, int] = field(default_factory=dict)  # register counts by symbol
    ptx: int = 0  # SM number of its PTX
    strings: bytes = b""
    unused: set[Part] = field(default_factory=set)  # pieces of .nv.global whose variables all lost

    def __post_init__(self) -> None:
        self._read_sections()
        self._read_symbols()
        for part in self.parts:
            part.kind = _kind(part)
        if not self.linked:
            self._mercury_half()
        for part in self.parts:
            part.owner = self._owner(part)
        self._read_facts()

    def rows(self, kind: str) -> Iterator[tuple[int, int]]:
        """Yield the rows (pairs of numbers) of the call graph or prototype sections."""
        for part in self.parts:
            if part.kind == kind:
                yield from struct.iter_unpack("<Ii", part.data)

    def entries(self, part: Part) -> list[Entry]:
        """Return the entries of a relocation section."""
        if part.type == 9:
            return [Entry(o, t, s, 0) for o, t, s in REL.iter_unpack(part.data)]
        return [Entry(o, t, s, a) for o, t, s, a in RELA.iter_unpack(part.data)]

    def text(self, at: int) -> str:
        """Return the string at an offset of .strtab."""
        return _text(self.strings, at)

    def _read_sections(self) -> None:
        """Read the section headers."""
        (table,) = struct.unpack_from("<Q", self.image, 40)
        count, names = struct.unpack_from("<HH", self.image, 60)
        starts = []
        for index in range(count):
            row = SHDR.unpack_from(self.image, table + SHDR.size * index)
            name, kind, flags, _, offset, size, link, info, align, _ = row
            data = b"" if kind in NO_BYTES else self.image[offset : offset + size]
            self.parts.append(Part(index, "", kind, flags, size, link, info, align, data))
            starts.append(name)
        for part, start in zip(self.parts, starts, strict=True):
            part.name = _text(self.parts[names].data, start)

    def _read_symbols(self) -> None:
        """Read the symbol table."""
        table = next(part for part in self.parts if part.type == 2)
        self.strings = self.parts[table.link].data
        for index, row in enumerate(SYMBOL.iter_unpack(table.data)):
            name, info, other, shndx, value, size = row
            mention = Mention(
                index, self.text(name), value, size, info >> 4, info & 15, other, shndx, self
            )
            if 0 < shndx < len(self.parts):
                mention.part = self.parts[shndx]
            self.mentions.append(mention)

    def _owner(self, part: Part) -> Mention | None:
        """Return the function to which a section belongs; None without one."""
        if part.kind in ("text", "capsule"):
            return self.mentions[part.info & 0xFFFFFF]
        if part.kind in ("info of", "parameters", "pool", "shared", "late") and part.info:
            return self.mentions[self.parts[part.info].info & 0xFFFFFF]
        return None

    def _read_facts(self) -> None:
        """Read the SM number of the PTX, and the register counts."""
        for part in self.parts:
            if part.name == ".note.nv.cuinfo":
                (self.ptx,) = struct.unpack_from("<H", part.data, 26)
            at = 0
            while part.kind == "info" and at < part.size:
                form, attribute, size = struct.unpack_from("<BBH", part.data, at)
                if attribute == REGCOUNT:
                    symbol, count = struct.unpack_from("<II", part.data, at + 4)
                    self.registers[symbol] = count
                at += 4 + (size if form == 4 else 0)

    def _mercury_half(self) -> None:
        """Give mercury sections their plain names.

        Plain relocations and parameters get the kinds `made later` and `late`: the second program
        makes them.
        """
        table = next((part for part in self.parts if part.type == 0x70000085), None)
        if table is None:
            return
        plain = {part.name: part for part in self.parts if not part.flags & MERCURY}
        code = {part.info: part for part in self.parts if part.kind == "text"}
        twins: dict[int, Part] = {}
        for part in self.parts:
            if part.name.startswith((".nv.merc.", ".nv.capmerc.")):
                name = part.name[part.name.index("merc") + 4 :]
                if part.type == 0x70000082:
                    part.kind, part.name, part.type = "relocations", name, 4
                elif part.kind == "capsule":
                    twins[part.index] = code[part.info]
                elif final_name(name) in plain:
                    twins[part.index] = plain[final_name(name)]
            elif part.kind == "relocations":
                part.kind = "made later"
            elif part.kind == "parameters":
                part.kind = "late"
        for part in self.parts:
            if part.kind == "bank" and part.name in FIRST_NAMES:
                part.name = FIRST_NAMES[part.name]
            elif part.kind == "pool":
                part.name = part.name.replace(".nv.constant2.", ".nv.constant.optimizer.")
            elif part.kind == "relocations":
                part.info = twins[part.info].index
        for mention in self.mentions:  # section symbols of the mercury symbol table
            if mention.type == SECTION and SYMBOL.size * mention.index < table.size:
                row = SYMBOL.unpack_from(table.data, SYMBOL.size * mention.index)
                mention.part = twins.get(row[3], mention.part)


def final_name(name: str) -> str:
    """Return the name that the second program gives to a section of the mercury file."""
    for final, first in FIRST_NAMES.items():
        name = name.replace(first, final)
    return name.replace(".nv.constant.optimizer.", ".nv.constant2.")


def _text(table: bytes, at: int) -> str:
    """Return the string at an offset of a string table."""
    return table[at : table.index(b"\0", at)].decode("latin1")


def _kind(part: Part) -> str:
    """Return the kind of a section, by flags, type and name."""
    if part.flags & MERCURY and part.type != 0x70000016:
        return "mercury"
    if part.type in KINDS:
        return KINDS[part.type]
    if part.type == 0x70000000:
        return "info" if part.name == ".nv.info" else "info of"
    if part.name.startswith(".text."):
        return "text"
    if 0x70000064 <= part.type <= 0x70000075:
        if not part.info:
            return "bank"
        return "parameters" if part.type == 0x70000064 else "pool"
    if part.type == 0x7000000A:
        return "common shared" if part.name == ".nv_debug.shared" else "shared"
    return "debug"
